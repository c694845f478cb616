//! [`Part`]: what a task keeps of System V IPC.
//!
//! Owns the number of the next mark. Never gives a mark twice. Locks: none.

use core::sync::atomic::{AtomicU64, Ordering};

/// A task's part. Others never look at it.
pub struct Part {
    /// By which its segments know it; 0 before it makes one. Relaxed: the task's own.
    mark: AtomicU64,
}

impl Part {
    pub const fn new() -> Self {
        Self { mark: AtomicU64::new(0) }
    }

    /// The mark for a segment that the task makes.
    pub(super) fn mark(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self.mark.load(Ordering::Relaxed) {
            0 => {
                let mark = NEXT.fetch_add(1, Ordering::Relaxed);
                self.mark.store(mark, Ordering::Relaxed);
                mark
            }
            mark => mark,
        }
    }

    /// The task ends: with no lock held.
    pub fn leave(&self) {
        let mark = self.mark.load(Ordering::Relaxed);
        if mark != 0 {
            super::segment::forget_maker(mark);
        }
    }
}
