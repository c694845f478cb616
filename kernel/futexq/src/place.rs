//! [`Place`]: where a task waits.
//!
//! Read without a lock by the waiter itself, to see whether it was woken and which queue to lock; written only
//! under the lock of the queue that is meant, by [`Line`](crate::Line).

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Where an entry stands in its queue: all of a word together, there by arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Rank {
    pub(crate) hash: u64,
    pub(crate) ticket: u64,
}

/// The queue that a task waits in, if it does, and where there.
pub struct Place {
    /// 0 for none, else the index of the queue plus one.
    queue: AtomicUsize,
    hash: AtomicU64,
    ticket: AtomicU64,
}

impl Place {
    /// Nowhere.
    #[expect(clippy::new_without_default, reason = "a default would say less")]
    #[inline]
    pub fn new() -> Self {
        Self { queue: AtomicUsize::new(0), hash: AtomicU64::new(0), ticket: AtomicU64::new(0) }
    }

    /// Whether the task waits. One that has queued and finds that it does not any more was woken.
    #[inline]
    pub fn is_queued(&self) -> bool {
        self.queue().is_some()
    }

    #[inline]
    pub(crate) fn queue(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `empty`, so that the woken sees what its waker did before.
        self.queue.load(Ordering::Acquire).checked_sub(1)
    }

    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        // Relaxed: read and written under the lock of the queue.
        Rank {
            hash: self.hash.load(Ordering::Relaxed),
            ticket: self.ticket.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn set(&self, queue: usize, rank: Rank) {
        // Relaxed: see `rank`. The waiter, which reads `queue` without the lock, then takes that lock and looks
        // again: only so it relies on it.
        self.hash.store(rank.hash, Ordering::Relaxed);
        self.ticket.store(rank.ticket, Ordering::Relaxed);
        self.queue.store(queue + 1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn empty(&self) {
        // Release: see `queue`.
        self.queue.store(0, Ordering::Release);
    }
}
