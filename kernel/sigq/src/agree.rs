//! The two words by which senders and receivers agree without a common lock.
//!
//! A sender publishes what is pending ([`PendingSet::publish`]), *then* reads who blocks it ([`Blocked::get`]). A thread
//! replaces its mask ([`Blocked::replace`]), *then* reads what is pending ([`PendingSet::get`]). All four are
//! sequentially consistent, so one of the two sees what the other did: the sender tells the thread, or the thread finds
//! the signal, or both. `tests/loom.rs` explores it.
//!
//! Owns the words. Holds no lock; [`PendingSet::publish`] is called with the queue locked that it speaks of.

use crate::sync::Ordered;
use abi::signal::SigSet;

/// The signals in a queue, to be read without its lock.
pub struct PendingSet(Ordered);

impl PendingSet {
    /// Nothing is pending.
    #[cfg(not(alea_loom))]
    #[inline]
    pub const fn new() -> Self {
        Self(Ordered::new(0))
    }

    /// Nothing is pending.
    #[cfg(alea_loom)]
    #[inline]
    pub fn new() -> Self {
        Self(Ordered::new(0))
    }

    /// What is pending, blocked or not.
    #[inline]
    pub fn get(&self) -> SigSet {
        SigSet(self.0.load())
    }

    /// Says what is pending now; only whoever has the queue locked calls it.
    #[inline]
    pub fn publish(&self, set: SigSet) {
        if self.0.load_own() != set.0 {
            self.0.store(set.0);
        }
    }
}

#[cfg(not(alea_loom))]
impl Default for PendingSet {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

/// The signals that a thread blocks: it alone writes them, all senders read them.
pub struct Blocked(Ordered);

impl Blocked {
    /// A mask.
    #[cfg(not(alea_loom))]
    #[inline]
    pub const fn new(set: SigSet) -> Self {
        Self(Ordered::new(set.0))
    }

    /// A mask.
    #[cfg(alea_loom)]
    #[inline]
    pub fn new(set: SigSet) -> Self {
        Self(Ordered::new(set.0))
    }

    /// The mask.
    #[inline]
    pub fn get(&self) -> SigSet {
        SigSet(self.0.load())
    }

    /// Replaces the mask, which cannot hold SIGKILL and SIGSTOP; the old one. The caller is the thread itself, and looks
    /// at what is pending afterwards.
    #[inline]
    pub fn replace(&self, set: SigSet) -> SigSet {
        SigSet(self.0.swap(set.minus(SigSet::UNBLOCKABLE).0))
    }
}
