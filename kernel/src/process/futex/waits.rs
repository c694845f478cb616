//! [`Waits`]: what a task keeps for its waits at futexes; it waits at one at a time.
//!
//! Owns no queue: those are in `futexq`, and in `pi` for locks that lend priority. Never tells that a task was
//! woken by anything but these queues. Locks: each field says who writes it.

use super::key::Key;
use crate::mm::fallible::try_box;
use crate::process;
use crate::process::task::task::Task;
use crate::sync::{SpinGuard, SpinLock, level};
use alea_futexq::{Entry, Kind, Place, Waiter};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// A task's part in the queues.
pub struct Waits {
    /// Which queue it is in; `futexq` writes it.
    place: Place,
    /// It owns the lock that it waits for. Written by the one that hands the lock over, with `pi`'s table locked.
    granted: AtomicBool,
    /// With `granted`: the owner before died, and this one must write the word.
    must_settle: AtomicBool,
    links: SpinLock<Links, level::Leaf>,
}

/// A task's part in the table of `pi`, which is locked by who reads or writes this.
#[derive(Clone, Copy)]
pub(super) struct Links {
    /// The word for which it waits.
    pub(super) blocked: Option<Key>,
    /// The first of the contended words that it owns.
    pub(super) owned: Option<Key>,
}

impl Waits {
    pub fn new() -> Self {
        let no = || AtomicBool::new(false);
        Self {
            place: Place::new(),
            granted: no(),
            must_settle: no(),
            links: SpinLock::new(Links { blocked: None, owned: None }),
        }
    }

    /// With the table of `pi` locked; for a statement, not longer.
    pub(super) fn links(&self) -> SpinGuard<'_, Links, level::Leaf> {
        self.links.lock()
    }

    /// Whether the task waits in a queue. Once it does not any more, it was woken.
    #[inline]
    pub(super) fn is_queued(&self) -> bool {
        self.place.is_queued()
    }

    /// Before it queues for a lock that lends priority.
    pub(super) fn expect_grant(&self) {
        // Relaxed: nobody else writes it before the task is queued.
        self.granted.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_granted(&self) -> bool {
        // Acquire: pairs with the Release in `grant`.
        self.granted.load(Ordering::Acquire)
    }

    pub(super) fn must_settle(&self) -> bool {
        // Relaxed: written before `granted`.
        self.must_settle.load(Ordering::Relaxed)
    }

    /// It owns the lock, as it will see when it is woken.
    pub(super) fn grant(&self, must_settle: bool) {
        // Relaxed: ordered by `granted`.
        self.must_settle.store(must_settle, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_granted`.
        self.granted.store(true, Ordering::Release);
    }
}

impl Waiter for Task {
    #[inline]
    fn place(&self) -> &Place {
        &self.futex.place
    }
}

/// An entry for the running task.
#[inline]
pub(super) fn entry(
    key: Key,
    kind: Kind<Key>,
    bitset: u32,
) -> Result<Entry<Key, Arc<Task>>, alea_futexq::NoMemory> {
    Entry::try_new_in(key, kind, bitset, process::current_arc(), |inner| try_box([inner]).ok())
}
