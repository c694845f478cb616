//! The lock that the example lends to the generator: a spinlock, where a kernel has its own.
//!
//! Owns the value that it protects. It must never be taken in an interrupt handler: the example has interrupts off.
//! Locks: itself.

use alea_random::crng::Exclusive;
use core::cell::UnsafeCell;
use core::hint;
use core::sync::atomic::{AtomicBool, Ordering};

pub struct Locked<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached in `with`, by one caller at a time, who may be on any CPU: so it has to be `Send`.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
}

impl<T> Exclusive<T> for Locked<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // Acquire: pairs with the Release below, so that the last holder's changes are seen.
        while self.taken.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        // SAFETY: the swap made this caller the only one until the store below. A panic in `f` ends the machine.
        let result = f(unsafe { &mut *self.value.get() });
        self.taken.store(false, Ordering::Release);
        result
    }
}
