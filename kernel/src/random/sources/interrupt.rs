//! The times of interrupts, stirred per CPU and passed on now and then.
//!
//! **Trust**, **credit** and the cost of an interrupt: see [`alea_random::fast_pool`]. Only interrupts of devices count to
//! which something came from outside ([`Origin`]); what the local timer and other CPUs send is stirred in for nothing, because a
//! program makes them send it when it likes, and so is what a device sends that has taken a program's output. When they are passed on: see [`alea_random::service`]. Runs in interrupt handlers only, and waits for no pool. (A credit that makes the service ready takes its locks
//! there, as any other does.)
//!
//! Owns what each CPU has stirred together. Never waits. Locks: none of its own.

use super::assessed_interrupts;
use crate::arch::irq::{self, Origin};
use crate::random::live::RANDOM;
use crate::random::stats;
use crate::{per_cpu, time};
use alea_random::credit::EntropyBits;
use alea_random::health::Health;
use alea_random::service::{Interrupt, Interrupts};
use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// One CPU's, and how many [tests](fn@test) were asked for when its own began.
struct OfCpu {
    interrupts: Interrupts,
    tests: u32,
}

per_cpu! {
    static OF_CPU: RefCell<OfCpu> = RefCell::new(OfCpu { interrupts: Interrupts::new(), tests: 0 });
}

/// Tests on demand. Relaxed: each CPU sees it by its next interrupts.
static TESTS: AtomicU32 = AtomicU32::new(0);

/// Bytes for each CPU.
pub const MEMORY: usize = size_of::<RefCell<OfCpu>>();

/// Has every CPU begin its start-up tests again with its next interrupt. Whether they pass is known when so many have come.
pub fn test() {
    TESTS.fetch_add(1, Ordering::Relaxed);
    if stats::health(stats::Source::Interrupt) != Health::Absent {
        stats::stands(stats::Source::Interrupt, Health::Starting);
    }
}

pub fn start() {
    irq::set_observer(if assessed_interrupts::is_asked() { observe_and_record } else { observe });
}

fn observe_and_record(vector: u8, tsc: u64, origin: Origin) {
    observe(vector, tsc, origin);
    if origin == Origin::Outside {
        assessed_interrupts::record(vector, tsc);
    }
}

fn observe(vector: u8, tsc: u64, origin: Origin) {
    OF_CPU.with_mut_in_interrupt(|OfCpu { interrupts: cpu, tests }| {
        let asked_for = TESTS.load(Ordering::Relaxed);
        if core::mem::replace(tests, asked_for) != asked_for {
            cpu.test_again();
        }
        let of_device = origin == Origin::Outside;
        let failures = cpu.failures();
        let interrupt = Interrupt { cycles: tsc, number: u64::from(vector), of_device };
        let passed_on =
            RANDOM.interrupt(cpu, interrupt, || Duration::from_nanos(time::since_boot_ns()));
        if of_device {
            watch_health(cpu, failures);
        }
        if let Some((len, bits)) = passed_on {
            stats::mixed(stats::Source::Interrupt, len);
            if bits > EntropyBits(0) {
                stats::credited(stats::Source::Interrupt, bits);
                RANDOM.credit(bits);
            }
        }
    });
}

fn watch_health(cpu: &Interrupts, failures: u32) {
    if cpu.failures() != failures {
        stats::failed(stats::Source::Interrupt);
    }
    if stats::stands(stats::Source::Interrupt, cpu.health()) {
        log::warn!("random: interrupts are not credited any more: their times fail the tests");
    }
}
