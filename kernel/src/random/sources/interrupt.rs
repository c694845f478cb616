//! The times of interrupts, stirred per CPU and passed on now and then.
//!
//! **Trust**, **credit** and the cost of an interrupt: see [`alea_random::fast_pool`]. Passing on costs
//! one short hash, after 1,024 interrupts or a second. Runs in interrupt handlers only; no lock is waited
//! for.

use crate::arch::irq;
use crate::random::{pool, stats};
use crate::{per_cpu, time};
use alea_random::fast_pool::{DRAIN_COUNT, FastPool, INTERRUPTS_PER_BIT};
use core::cell::Cell;
use zerocopy::IntoBytes;

/// Nanoseconds after which fewer interrupts are passed on, too.
const DRAIN_AFTER: u64 = 1_000_000_000;

per_cpu! {
    static FAST: Cell<FastPool> = Cell::new(FastPool::new());
    static DRAINED: Cell<u64> = Cell::new(0);
}

/// Bytes for each CPU.
pub const MEMORY: usize = size_of::<Cell<FastPool>>() + size_of::<Cell<u64>>();

pub fn start() {
    irq::set_observer(observe);
}

fn observe(vector: u8, tsc: u64) {
    let mut fast = FAST.get();
    fast.stir(tsc, u64::from(vector));
    if fast.count() >= INTERRUPTS_PER_BIT && fast.count().is_multiple_of(INTERRUPTS_PER_BIT) {
        let now = time::since_boot_ns();
        if fast.count() >= DRAIN_COUNT || now.saturating_sub(DRAINED.get()) >= DRAIN_AFTER {
            drain(&mut fast, now);
        }
    }
    FAST.set(fast);
}

fn drain(fast: &mut FastPool, now: u64) {
    let (words, bits) = fast.drain();
    if !pool::try_mix(words.as_bytes()) {
        return;
    }
    DRAINED.set(now);
    stats::mixed(stats::Source::Interrupt, size_of_val(&words));
    stats::credited(stats::Source::Interrupt, bits);
    pool::credit(bits);
}
