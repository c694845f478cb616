//! Pending signals of one task, or of a whole process: [`alea_sigq`]'s queue under its lock.
//!
//! Owns the lock and the word beside it; the rules are [`alea_sigq::queue`]'s. It must never wake anybody: senders do
//! that when the queue is unlocked. Locks: [`crate::sync::level::Signal`], and inside it whatever dropping a [`Charge`] takes.

use super::charge::Charge;
use crate::sync::{SpinGuard, SpinLock, level};
use abi::signal::SigSet;
use alea_sigq::{PendingSet, Queue};
use core::ops::{Deref, DerefMut};

/// A queue under its lock, and beside it which signals are in it, to be read without.
pub struct Pending {
    /// Published with the queue locked.
    set: PendingSet,
    queue: SpinLock<Queue<Charge>, level::Signal>,
}

impl Pending {
    pub const fn new() -> Self {
        Self { set: PendingSet::new(), queue: SpinLock::new(Queue::new()) }
    }

    /// The signals that are pending, blocked or not.
    #[inline]
    pub fn set(&self) -> SigSet {
        self.set.get()
    }

    /// The queue.
    #[inline]
    pub fn lock(&self) -> PendingGuard<'_> {
        PendingGuard { queue: self.queue.lock(), set: &self.set }
    }
}

/// A locked queue; unlocking publishes what is pending.
pub struct PendingGuard<'a> {
    queue: SpinGuard<'a, Queue<Charge>, level::Signal>,
    set: &'a PendingSet,
}

impl Deref for PendingGuard<'_> {
    type Target = Queue<Charge>;
    #[inline]
    fn deref(&self) -> &Queue<Charge> {
        &self.queue
    }
}

impl DerefMut for PendingGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Queue<Charge> {
        &mut self.queue
    }
}

impl Drop for PendingGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Still locked: fields are dropped after this.
        self.set.publish(self.queue.set());
    }
}
