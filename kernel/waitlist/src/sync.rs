//! The atomics and cells of this crate: `core`'s, or loom's when `--cfg alea_loom` explores interleavings.
//!
//! Owns nothing. No other module names `core::sync::atomic`, `UnsafeCell` or loom.

#[cfg(not(alea_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
#[cfg(alea_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

#[cfg(not(alea_loom))]
use core::cell::UnsafeCell;
#[cfg(alea_loom)]
use loom::cell::UnsafeCell;

/// A value that a lock elsewhere guards. Under loom an access without that lock is found.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

impl<T: Copy> Guarded<T> {
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// # Safety
    /// The caller holds the lock that guards the value.
    #[inline]
    pub unsafe fn get(&self) -> T {
        #[cfg(not(alea_loom))]
        // SAFETY: the lock keeps writers out.
        unsafe {
            *self.0.get()
        }
        #[cfg(alea_loom)]
        // SAFETY: as above; loom checks it.
        self.0.with(|value| unsafe { *value })
    }

    /// # Safety
    /// The caller holds the lock that guards the value.
    #[inline]
    pub unsafe fn set(&self, to: T) {
        #[cfg(not(alea_loom))]
        // SAFETY: the lock keeps everybody else out, and no reference into the cell is ever given away.
        unsafe {
            *self.0.get() = to
        }
        #[cfg(alea_loom)]
        // SAFETY: as above; loom checks it.
        self.0.with_mut(|value| unsafe { *value = to })
    }
}
