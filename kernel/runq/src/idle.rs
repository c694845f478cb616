//! No idle CPU stays beside a waiting task.
//!
//! A CPU that has nothing to run marks itself, *then*, after a full fence, looks at the lengths of the other queues. Who
//! leaves a task waiting has queued it, *then*, after a full fence, looks for marked CPUs. One of the two sees the other:
//! the CPU finds the task, or is claimed and told. `tests/loom.rs` explores it.
//!
//! Owns the mask and the lengths, which are hints without the fences. Holds no lock; lengths are stored with the queue
//! locked that they speak of.

use crate::sync::{AtomicU64, AtomicUsize, Ordering, fence};

/// The CPUs that have nothing to run and were not given anything since they looked.
pub struct IdleCpus(AtomicU64);

impl IdleCpus {
    /// All are busy.
    #[cfg(not(alea_loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// All are busy.
    #[cfg(alea_loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A CPU has nothing to run: wakers may choose it. It marks itself once more, with
    /// [`mark_and_look`](Self::mark_and_look), before it halts.
    #[inline]
    pub fn mark(&self, cpu: usize) {
        // Relaxed: a hint.
        self.0.fetch_or(1 << cpu, Ordering::Relaxed);
    }

    /// Marks a CPU; afterwards it looks at the other queues' lengths, and halts only if there was nothing for it.
    #[inline]
    pub fn mark_and_look(&self, cpu: usize) {
        self.0.fetch_or(1 << cpu, Ordering::SeqCst);
        // SeqCst: pairs with the fence in `after_queueing`: that one sees the mark, or this CPU sees the task.
        fence(Ordering::SeqCst);
    }

    /// The marked CPUs, for whoever has just left a task waiting in a queue and unlocked it.
    #[inline]
    pub fn after_queueing(&self) -> u64 {
        // SeqCst: pairs with the fence in `mark_and_look`.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        self.0.load(Ordering::Relaxed)
    }

    /// The marked CPUs: a hint.
    #[inline]
    pub fn hint(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes a CPU's mark away; false if somebody was faster. Whoever succeeds with another CPU tells it.
    #[inline]
    pub fn claim(&self, cpu: usize) -> bool {
        let bit = 1 << cpu;
        // AcqRel: one of several claimants wins; the fences order the rest.
        self.0.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }
}

#[cfg(not(alea_loom))]
impl Default for IdleCpus {
    fn default() -> Self {
        Self::new()
    }
}

/// How many tasks wait in a queue, to be read without its lock.
pub struct Length(AtomicUsize);

impl Length {
    /// Nobody waits.
    #[cfg(not(alea_loom))]
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Nobody waits.
    #[cfg(alea_loom)]
    pub fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Says how many wait; only whoever has the queue locked calls it.
    #[inline]
    pub fn publish(&self, len: usize) {
        // Relaxed: a hint, ordered by the fences of `IdleCpus` where that matters.
        self.0.store(len, Ordering::Relaxed);
    }

    /// How many waited a moment ago.
    #[inline]
    pub fn get(&self) -> usize {
        // Relaxed: see `publish`.
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(not(alea_loom))]
impl Default for Length {
    fn default() -> Self {
        Self::new()
    }
}
