//! The times of interrupts, stirred per CPU and passed on now and then.
//!
//! **Trust**, **credit** and the cost of an interrupt: see [`alea_random::fast_pool`]. Only interrupts of devices count;
//! what the local timer and other CPUs send is stirred in for nothing, because a program makes them send it when it
//! likes. Passing on costs one short hash, after 1,024 interrupts or a second; once the service is ready after a second
//! at least, so that nobody who causes interrupts steers what devices told into a pool of his choice. Runs in interrupt handlers only, and
//! waits for no pool: one that is in use gets its words later. (A credit that makes the service ready takes its locks
//! there, as any other does.)
//!
//! Owns one fast pool for each CPU. Never waits. Locks: none of its own.

use super::jitter;
use crate::arch::irq;
use crate::random::{pool, stats};
use crate::{per_cpu, time};
use alea_random::credit::{EntropyBits, State};
use alea_random::fast_pool::{DRAIN_COUNT, FastPool, INTERRUPTS_PER_BIT};
use alea_random::pool::Trickle;
use core::cell::{Cell, RefCell};
use zerocopy::IntoBytes;

/// Nanoseconds after which fewer interrupts are passed on, too.
const DRAIN_AFTER: u64 = 1_000_000_000;

per_cpu! {
    static FAST: RefCell<FastPool> = RefCell::new(FastPool::new());
    static DRAINED: Cell<u64> = Cell::new(0);
}

/// Bytes for each CPU.
pub const MEMORY: usize = size_of::<RefCell<FastPool>>() + size_of::<Cell<u64>>();

pub fn start() {
    irq::set_observer(observe);
}

fn observe(vector: u8, tsc: u64) {
    FAST.with_mut_in_interrupt(|fast| {
        if irq::is_device(vector) {
            stir_device(fast, vector, tsc);
        } else {
            fast.stir(tsc, u64::from(vector));
        }
        if fast.count() >= INTERRUPTS_PER_BIT && fast.count().is_multiple_of(INTERRUPTS_PER_BIT) {
            let now = time::since_boot_ns();
            let early = fast.count() >= DRAIN_COUNT && pool::state() != State::Ready;
            if early || now.saturating_sub(DRAINED.get()) >= DRAIN_AFTER {
                drain(fast, now);
            }
        }
    });
}

fn stir_device(fast: &mut FastPool, vector: u8, tsc: u64) {
    let failures = fast.failures();
    fast.stir_device(tsc, u64::from(vector));
    if fast.failures() != failures {
        stats::failed(stats::Source::Interrupt);
    }
    if stats::stands(stats::Source::Interrupt, fast.health()) {
        log::warn!("random: interrupts are not credited any more: their times fail the tests");
    }
}

fn drain(fast: &mut FastPool, now: u64) {
    let (words, bits) = fast.drain(jitter::counter());
    if !pool::try_spread(Trickle::Interrupts, words.as_bytes()) {
        return;
    }
    DRAINED.set(now);
    stats::mixed(stats::Source::Interrupt, size_of_val(&words));
    if bits > EntropyBits(0) {
        stats::credited(stats::Source::Interrupt, bits);
        pool::credit(bits);
    }
}
