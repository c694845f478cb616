//! Looking at other CPUs, and stopping them, by NMI: works whatever they are doing.
//!
//! Owns what each CPU last said of itself. Locks: none, because an NMI interrupts anything; its handler never
//! prints and touches only its own CPU's record.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::arch::entry::frame::TrapFrame;
use crate::arch::smp;
use crate::base::percpu::{self, MAX_CPUS};
use crate::base::{cpu, tsc};

/// Where a CPU was. Relaxed: published by `answered`.
struct Record {
    rip: AtomicU64,
    rbp: AtomicU64,
    in_user: AtomicBool,
    /// Looks that were asked for, and the last one that was answered.
    asked: AtomicU32,
    answered: AtomicU32,
}

static RECORDS: [Record; MAX_CPUS] = [const {
    Record {
        rip: AtomicU64::new(0),
        rbp: AtomicU64::new(0),
        in_user: AtomicBool::new(false),
        asked: AtomicU32::new(0),
        answered: AtomicU32::new(0),
    }
}; MAX_CPUS];

/// CPUs that take an NMI stay in it.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Where a CPU was when it was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub rip: u64,
    /// For a walk of its stack; of no use if it was in user mode.
    pub rbp: u64,
    pub in_user: bool,
}

/// From now on a CPU that is looked at stops for good: the kernel ends.
pub fn stop_when_seen() {
    // Release: pairs with the Acquire in `on_nmi`.
    STOPPING.store(true, Ordering::Release);
}

/// Whether the kernel ends: other CPUs may stand anywhere, for good.
pub fn are_stopped() -> bool {
    // Relaxed: who asks again sees it in time.
    STOPPING.load(Ordering::Relaxed)
}

/// How long a CPU may take to answer, in TSC ticks: a virtual one may have to wait for a real one.
const PATIENCE: u64 = 1_000_000_000;

/// Where another CPU is; nothing if it does not even take an NMI.
pub fn look(cpu: usize) -> Option<Seen> {
    let record = &RECORDS[cpu];
    // Relaxed: the NMI comes after it.
    let number = record.asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    smp::send_nmi(cpu);
    let from = tsc::read();
    // Acquire: pairs with the Release in `on_nmi`.
    while record.answered.load(Ordering::Acquire) != number {
        if tsc::read().wrapping_sub(from) > PATIENCE {
            return None;
        }
        cpu::relax();
    }
    Some(Seen {
        rip: record.rip.load(Ordering::Relaxed),
        rbp: record.rbp.load(Ordering::Relaxed),
        in_user: record.in_user.load(Ordering::Relaxed),
    })
}

/// An NMI arrived.
pub(in crate::arch) fn on_nmi(frame: &TrapFrame) {
    let record = &RECORDS[percpu::cpu_id()];
    record.rip.store(frame.rip, Ordering::Relaxed);
    record.rbp.store(frame.rbp, Ordering::Relaxed);
    record.in_user.store(frame.user_mode(), Ordering::Relaxed);
    // Release: pairs with the Acquire in `look`.
    record.answered.store(record.asked.load(Ordering::Relaxed), Ordering::Release);
    // Acquire: pairs with the Release in `stop_when_seen`.
    if STOPPING.load(Ordering::Acquire) {
        cpu::halt_forever();
    }
}
