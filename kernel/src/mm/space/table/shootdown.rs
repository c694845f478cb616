//! Making other CPUs flush, or give back free frames: an interrupt, and a wait until each has done it.
//!
//! Owns one request for each CPU that asks, and for each CPU the mask of those that ask it. Never wait with a
//! spinlock held: a CPU that spins for that lock with interrupts off would never answer (debug builds
//! check). Interrupts may be off for other reasons, since the waiting CPU answers requests itself.
//!
//! Locks: none.

use super::tlb::SINGLE;
use crate::arch::{irq, smp};
use crate::base::percpu::{MAX_CPUS, cpu_id, online_mask};
use crate::base::{cpu, tsc};
use crate::mm::frames;
use crate::mm::space::space::AddressSpace;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a CPU asks of others. Its fields are written while nobody has the CPU's bit in an inbox.
struct Request {
    /// How many of `pages` count; `ALL` for the whole space.
    count: AtomicU32,
    pages: [AtomicU64; SINGLE],
    /// The CPUs that have not answered.
    waiting: AtomicU64,
}

const ALL: u32 = u32::MAX;
/// Not to flush, but to give back the free frames that the CPU keeps.
const DRAIN: u32 = u32::MAX - 1;

static REQUESTS: [Request; MAX_CPUS] = [const {
    Request {
        count: AtomicU32::new(0),
        pages: [const { AtomicU64::new(0) }; SINGLE],
        waiting: AtomicU64::new(0),
    }
}; MAX_CPUS];

/// For each CPU: those that wait for it.
static INBOX: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Connects the interrupt.
pub(in crate::mm) fn init() {
    irq::set_call(answer);
}

/// Runs [`AddressSpace::flush_here`] on each of `cpus`, which do not include this one; they have done it when this
/// returns. At most `SINGLE` pages, or `None` for all of the space.
pub(super) fn flush_on(cpus: u64, pages: Option<&[u64]>) {
    ask(cpus, pages.map_or(ALL, |pages| pages.len().min(SINGLE) as u32), pages.unwrap_or_default());
}

/// Makes all CPUs give back the free frames that they keep.
pub(in crate::mm) fn drain_all() {
    cpu::without_interrupts(frames::drain);
    let others = online_mask() & !(1 << cpu_id());
    if others != 0 {
        ask(others, DRAIN, &[]);
    }
}

fn ask(cpus: u64, count: u32, pages: &[u64]) {
    crate::sync::assert_may_block();
    let here = cpu_id();
    let request = &REQUESTS[here];
    // Relaxed: published by the Release on the inboxes.
    request.count.store(count, Ordering::Relaxed);
    for (slot, &page) in request.pages.iter().zip(pages) {
        slot.store(page, Ordering::Relaxed);
    }
    request.waiting.store(cpus, Ordering::Relaxed);
    let mut left = cpus;
    while left != 0 {
        let target = left.trailing_zeros() as usize;
        left &= left - 1;
        // AcqRel: pairs with the swap in `answer`. What was not zero is an interrupt that is under way.
        if INBOX[target].fetch_or(1 << here, Ordering::AcqRel) == 0 {
            smp::send(target, irq::CALL_VECTOR);
        }
    }
    let from = tsc::read();
    let mut warned = false;
    // Acquire: pairs with the Release in `answer`: all that the others did with old entries is over.
    while request.waiting.load(Ordering::Acquire) != 0 {
        // Relaxed: a hint.
        if INBOX[here].load(Ordering::Relaxed) != 0 {
            cpu::without_interrupts(answer);
        }
        cpu::relax();
        if !warned && tsc::read().wrapping_sub(from) > TOO_LONG {
            warned = true;
            let missing = request.waiting.load(Ordering::Relaxed);
            log::warn!("CPUs {missing:#x} do not answer CPU {here}");
            crate::diag::panic::log_all_cpus();
        }
    }
}

/// TSC ticks after which a CPU that does not answer is reported: many seconds.
const TOO_LONG: u64 = 60_000_000_000;

/// Does what others ask of this CPU. Interrupts are off.
fn answer() {
    let here = cpu_id();
    // AcqRel: pairs with the one in `flush_on`.
    let mut senders = INBOX[here].swap(0, Ordering::AcqRel);
    while senders != 0 {
        let request = &REQUESTS[senders.trailing_zeros() as usize];
        senders &= senders - 1;
        // Relaxed: the sender's bit in the inbox published them.
        match request.count.load(Ordering::Relaxed) {
            ALL => AddressSpace::flush_here(None),
            DRAIN => frames::drain(),
            count => {
                let mut pages = [0; SINGLE];
                let pages = &mut pages[..(count as usize).min(SINGLE)];
                for (page, slot) in pages.iter_mut().zip(&request.pages) {
                    *page = slot.load(Ordering::Relaxed);
                }
                AddressSpace::flush_here(Some(pages));
            }
        }
        // Release: pairs with the Acquire in `flush_on`. The request is not looked at afterwards.
        request.waiting.fetch_and(!(1 << here), Ordering::Release);
    }
}
