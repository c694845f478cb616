//! [`OwnerCell`] and [`ArcSlot`]: what a task keeps for itself, and a place to leave one reference.
//!
//! A task reads its own files, credentials and address space on almost every system call and replaces them
//! hardly ever; others look at them rarely. So the owner reads without a lock, replaces under it, and all
//! others read under it. Only a [`Current`] can borrow and replace, which nobody but the owner has.
//! Interrupt handlers have one too, for the task that they interrupt: they come between two steps of a borrow, which
//! they leave as they found it, and never into a replacement, whose lock keeps them off.
//!
//! Owns the value. Never borrowed while it is replaced: `replace` panics if a borrow lives. Locks: `Owned`, for others
//! and for replacing.

use super::level;
use super::spin::SpinLock;
use crate::base::current::Current;
use crate::base::percpu;
use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// No task is larger than this; see [`Current::borrow`].
pub const MAX_OWNER_SIZE: usize = 4096;

/// A value that one task owns and others may look at.
pub struct OwnerCell<T> {
    value: UnsafeCell<T>,
    /// Live borrows of the owner; only the owner touches it.
    borrows: Cell<u32>,
    lock: SpinLock<(), level::Owned>,
}

// SAFETY: `borrows` and lock-free reads take a `Current`, so they are the owner's alone; everyone else
// reads under `lock`, under which alone the value changes.
unsafe impl<T: Send + Sync> Sync for OwnerCell<T> {}

impl<T> OwnerCell<T> {
    /// A cell with its first value.
    pub const fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), borrows: Cell::new(0), lock: SpinLock::new(()) }
    }

    /// Looks at the value from any thread.
    #[inline]
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let _guard = self.lock.lock();
        // SAFETY: the value changes only under the lock.
        look(unsafe { &*self.value.get() })
    }

    /// As [`read`](Self::read), where interrupts are off and stay so.
    #[inline]
    pub fn read_irqs_off<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let _guard = self.lock.lock_irqs_off();
        // SAFETY: as in `read`.
        look(unsafe { &*self.value.get() })
    }
}

impl<T> Current<OwnerCell<T>> {
    /// The value.
    #[inline]
    pub fn borrow(self) -> OwnerRef<T> {
        debug_assert!(
            ptr::from_ref(&*self).addr().wrapping_sub(percpu::current().addr()) < MAX_OWNER_SIZE,
            "a cell that is no part of the task is borrowed"
        );
        self.borrows.set(self.borrows.get().wrapping_add(1));
        // SAFETY: only the owner changes the value, and `replace` refuses while a borrow lives.
        let value = self.map(|cell| unsafe { &*cell.value.get() });
        OwnerRef { value, borrows: self.map(|cell| &cell.borrows) }
    }

    /// Replaces the value, of which nothing is borrowed. Returns the old one.
    pub fn replace(self, value: T) -> T {
        assert!(self.borrows.get() == 0, "an owner's cell is replaced while borrowed");
        let _guard = self.lock.lock();
        // SAFETY: readers hold the lock, and the owner, which calls this, has no borrow.
        unsafe { ptr::replace(self.value.get(), value) }
    }
}

/// A borrow by the owner.
pub struct OwnerRef<T: 'static> {
    value: Current<T>,
    borrows: Current<Cell<u32>>,
}

impl<T> OwnerRef<T> {
    /// A borrow of a part.
    #[inline]
    pub fn map<U>(this: Self, part: impl for<'a> FnOnce(&'a T) -> &'a U) -> OwnerRef<U> {
        let mapped = OwnerRef { value: this.value.map(part), borrows: this.borrows };
        // The borrow moves on.
        core::mem::forget(this);
        mapped
    }
}

impl<T> Deref for OwnerRef<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for OwnerRef<T> {
    #[inline]
    fn drop(&mut self) {
        self.borrows.set(self.borrows.get().wrapping_sub(1));
    }
}

/// A place that holds one reference or none; put and taken by single atomic swaps.
pub struct ArcSlot<T>(AtomicPtr<T>);

impl<T> ArcSlot<T> {
    /// An empty slot.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Leaves a reference; what was there comes back.
    #[inline]
    pub fn put(&self, value: Arc<T>) -> Option<Arc<T>> {
        // AcqRel: pairs with itself in `take`, so that the taker sees what the giver wrote before.
        Self::from_raw(self.0.swap(Arc::into_raw(value).cast_mut(), Ordering::AcqRel))
    }

    /// Takes the reference.
    #[inline]
    pub fn take(&self) -> Option<Arc<T>> {
        // AcqRel: see `put`.
        Self::from_raw(self.0.swap(ptr::null_mut(), Ordering::AcqRel))
    }

    #[inline]
    fn from_raw(raw: *mut T) -> Option<Arc<T>> {
        // SAFETY: the slot holds only what `Arc::into_raw` gave, and a swap takes it out for good.
        (!raw.is_null()).then(|| unsafe { Arc::from_raw(raw) })
    }
}

impl<T> Drop for ArcSlot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
