//! The counters: of each CPU for all tasks, and of one process.
//!
//! Owns both, and what the first were when counting began. Those of a CPU are written by that CPU alone, in task context, so
//! they need no locked instruction; those of a process are shared by its threads. Never set back: what they were at the
//! beginning is taken off. Locks: `Leaf`, for the beginning, when somebody looks.

use crate::arch::entry::frame::SYSCALLS;
use crate::base::percpu::{self, MAX_CPUS};
use crate::mm::fallible::TryGrow;
use crate::sync::{SpinLock, level};
use crate::time;
use abi::Result;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// What is counted of one call. Relaxed everywhere: statistics, which order nothing.
struct Tally {
    calls: AtomicU64,
    errors: AtomicU64,
    ticks: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self { calls: AtomicU64::new(0), errors: AtomicU64::new(0), ticks: AtomicU64::new(0) }
    }

    fn sum(&self) -> Sum {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Sum { calls: get(&self.calls), errors: get(&self.errors), ticks: get(&self.ticks) }
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    errors: u64,
    ticks: u64,
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.wrapping_add(other.calls),
            errors: self.errors.wrapping_add(other.errors),
            ticks: self.ticks.wrapping_add(other.ticks),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls.wrapping_sub(other.calls),
            errors: self.errors.wrapping_sub(other.errors),
            ticks: self.ticks.wrapping_sub(other.ticks),
        }
    }

    fn line(self) -> Line {
        let ns = u128::from(self.ticks) * 1_000_000_000 / u128::from(time::tsc_hz().max(1));
        Line { calls: self.calls, errors: self.errors, ns: ns as u64 }
    }
}

/// What was counted of one call, to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub calls: u64,
    pub errors: u64,
    /// From the entry to the return, sleep included.
    pub ns: u64,
}

crate::per_cpu! {
    /// Of all tasks; the last one is of all numbers beyond the table.
    static TALLIES: [Tally; SYSCALLS] = [const { Tally::new() }; SYSCALLS];
}

/// What the sums were when counting began.
static BEGINNING: SpinLock<Vec<Sum>, level::Leaf> = SpinLock::new(Vec::new());

fn total(number: usize) -> Sum {
    (0..MAX_CPUS.min(percpu::cpus_online()))
        .filter_map(|cpu| TALLIES.of(cpu))
        .map(|tallies| tallies[number].sum())
        .fold(Sum::default(), Sum::plus)
}

/// What all tasks did of call `number` since counting began.
pub fn all(number: usize) -> Line {
    let beginning = BEGINNING.lock().get(number).copied().unwrap_or_default();
    total(number).minus(beginning).line()
}

/// Counting of all tasks begins: what was counted before is forgotten.
pub(super) fn begin_all() -> Result<()> {
    let mut sums = Vec::new();
    sums.try_extend((0..SYSCALLS).map(total))?;
    let old = core::mem::replace(&mut *BEGINNING.lock(), sums);
    drop(old);
    Ok(())
}

/// A call begins, on this CPU.
pub(super) fn begin(number: usize) {
    TALLIES.with(|tallies| add(&tallies[number].calls, 1));
}

/// It has returned, maybe on another CPU.
pub(super) fn end(number: usize, failed: bool, ticks: u64) {
    TALLIES.with(|tallies| {
        add(&tallies[number].errors, u64::from(failed));
        add(&tallies[number].ticks, ticks);
    });
}

/// This CPU is the only writer, and no task is preempted here.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// The counters of one process.
pub(super) struct Counts(Vec<Tally>);

impl Counts {
    pub fn new() -> Result<Self> {
        let mut tallies = Vec::new();
        tallies.try_extend((0..SYSCALLS).map(|_| Tally::new()))?;
        Ok(Self(tallies))
    }

    pub fn begin(&self, number: usize) {
        self.0[number].calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self, number: usize, failed: bool, ticks: u64) {
        self.0[number].errors.fetch_add(u64::from(failed), Ordering::Relaxed);
        self.0[number].ticks.fetch_add(ticks, Ordering::Relaxed);
    }

    /// The calls that were made.
    pub fn lines(&self) -> impl Iterator<Item = (usize, Line)> {
        let sums = self.0.iter().map(Tally::sum).enumerate();
        sums.filter(|(_, sum)| sum.calls != 0).map(|(number, sum)| (number, sum.line()))
    }
}
