//! [`Mutex`]: mutual exclusion that sleeps.
//!
//! Owns the value and who waits. May be held across user copies and allocations. Must never be taken in an interrupt
//! handler or while a spinlock is held. The uncontended path is one compare-and-swap each way. Locks: the wait queue's
//! own, if somebody waits.

use super::wait::WaitQueue;
use crate::base::tsc;
use crate::trace::{self, Event, Point};
use abi::Errno;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU8, Ordering};

const FREE: u8 = 0;
const HELD: u8 = 1;
const CONTENDED: u8 = 2;

/// A sleeping lock.
pub struct Mutex<T: ?Sized> {
    state: AtomicU8,
    waiters: WaitQueue,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one reference at a time, so sharing it needs no more than `T: Send`.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU8::new(FREE),
            waiters: WaitQueue::new(),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, sleeping (uninterruptibly) while another thread holds it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let start = tsc::read();
        let guard = self.waiters.wait(|| self.try_contended());
        told(start);
        guard
    }

    /// As [`lock`](Self::lock), but gives up with `ERESTARTSYS` when a signal arrives.
    #[inline]
    pub fn lock_interruptible(&self) -> Result<MutexGuard<'_, T>, Errno> {
        match self.try_lock() {
            Some(guard) => Ok(guard),
            None => self.lock_contended_interruptible(),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_contended_interruptible(&self) -> Result<MutexGuard<'_, T>, Errno> {
        let start = tsc::read();
        let guard = self.waiters.wait_interruptible(|| self.try_contended())?;
        told(start);
        Ok(guard)
    }

    /// As [`lock`](Self::lock), but gives up with `EINTR` when the thread is killed.
    #[inline]
    pub fn lock_killable(&self) -> Result<MutexGuard<'_, T>, Errno> {
        match self.try_lock() {
            Some(guard) => Ok(guard),
            None => self.lock_contended_killable(),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_contended_killable(&self) -> Result<MutexGuard<'_, T>, Errno> {
        let start = tsc::read();
        let guard =
            self.waiters.wait_killable(|| self.try_contended()).map_err(|_| Errno::EINTR)?;
        told(start);
        Ok(guard)
    }

    /// Takes the lock if it is free at once.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // Acquire: pairs with the Release in `MutexGuard::drop`.
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| MutexGuard { mutex: self })
    }

    /// The value through an exclusive reference, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the lock for a waiter: leaves the mark that makes the holder wake the queue.
    fn try_contended(&self) -> Option<MutexGuard<'_, T>> {
        // Acquire: pairs with the Release in `MutexGuard::drop`.
        let was = self.state.swap(CONTENDED, Ordering::Acquire);
        // A guard may exist only if the lock is ours: one that is dropped unlocks.
        (was == FREE).then(|| MutexGuard { mutex: self })
    }
}

/// A mutex was waited for, since then.
fn told(start: u64) {
    trace::at(Point::Lock, || Event::Lock { name: "Mutex", start });
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Access to a locked value; dropping it unlocks.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquires in `try_lock` and `try_contended`.
        if self.mutex.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake_next(&self.mutex.waiters);
        }
    }
}

/// Apart, so that giving back what nobody waits for is short.
#[cold]
#[inline(never)]
fn wake_next(waiters: &WaitQueue) {
    waiters.wake_one();
}
