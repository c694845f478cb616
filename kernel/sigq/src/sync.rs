//! The atomics of this crate: `core`'s, or loom's when `--cfg alea_loom` explores interleavings.
//!
//! Owns nothing. No other module names `core::sync::atomic` or loom.
//!
//! loom knows sequential consistency of fences only, and takes `SeqCst` loads and stores for acquiring and releasing
//! ones. So the functions here, all sequentially consistent, have a fence beside them under loom: stronger towards other
//! words than the real ones, and the same among themselves, which is all that this crate rests on.

#[cfg(not(alea_loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(alea_loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// A word of which all reads and writes have one order, together with those of all other such words.
pub(crate) struct Ordered(AtomicU64);

impl Ordered {
    /// A word.
    #[cfg(not(alea_loom))]
    pub(crate) const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// A word (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline]
    pub(crate) fn load(&self) -> u64 {
        #[cfg(alea_loom)]
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn store(&self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
        #[cfg(alea_loom)]
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn swap(&self, value: u64) -> u64 {
        let old = self.0.swap(value, Ordering::SeqCst);
        #[cfg(alea_loom)]
        fence(Ordering::SeqCst);
        old
    }

    /// For the only one that writes it: no order is needed with what oneself has written.
    #[inline]
    pub(crate) fn load_own(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
