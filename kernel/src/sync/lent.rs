//! [`Own`]: a task's part in what it keeps references in, and [`Borrowed`], one of those in use without a reference more.
//!
//! What several tasks may share lies behind a [`PartLock`]: anybody reads it under the lock, and only a task that has a part changes it. So
//! one that shares it with nobody reads it without the lock. What it uses of it meanwhile is noted, and no step of that is locked: before
//! it changes the value, or gives another task a part, each note becomes a reference, and who borrowed finds that out in the end. Owns the
//! notes. Never lends more than two things at a time: a third is a reference from the start. Locks: the `PartLock`'s.

use super::level::Level;
use super::owner::OwnerRef;
use super::part::{Ended, Part, Parted};
use super::spin::{SpinGuard, SpinLock, order};
use abi::Result;
use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A lock around what only those who have a part in it change.
pub struct PartLock<T, L: Level>(SpinLock<T, L>);

impl<T, L: Level> PartLock<T, L> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(SpinLock::new(value))
    }

    /// The value, to read.
    #[inline]
    pub fn read(&self) -> impl Deref<Target = T> {
        self.0.lock()
    }

    /// The value of what nobody has a part in any more.
    pub fn end(&self, _: &Ended) -> SpinGuard<'_, T, L> {
        self.0.lock()
    }

    /// The value through an exclusive reference, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// What lies behind a [`PartLock`].
pub trait Guarded: Parted {
    /// Its task reads it while others do.
    type Value: Sync;
    type Level: Level;
    /// What it keeps references to.
    type Kept: 'static;

    fn lock(&self) -> &PartLock<Self::Value, Self::Level>;
}

/// A task's own part.
pub struct Own<T: Guarded> {
    part: Part<T>,
    lender: Lender<T::Kept>,
}

impl<T: Guarded> Own<T> {
    /// The first part, in what nobody holds yet.
    pub fn first(whole: Arc<T>) -> Self {
        Self::of(Part::first(whole))
    }

    fn of(part: Part<T>) -> Self {
        Self { part, lender: Lender::new() }
    }

    /// Whether another task has a part. One that is just leaving may count.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.part.is_shared()
    }

    /// The whole, to look at.
    pub fn whole(&self) -> &Arc<T> {
        self.part.whole()
    }
}

impl<T: Guarded> Deref for Own<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T: Guarded> OwnerRef<Own<T>> {
    /// A part for one more task, which may take out what this one uses.
    pub fn share(&self) -> Own<T> {
        self.lender.settle();
        Own::of(self.part.share())
    }

    /// The value, to change. Nothing is lent while it is locked: the checking kernel panics.
    #[inline]
    pub fn change(&self) -> SpinGuard<'_, T::Value, T::Level> {
        self.lender.settle();
        self.part.lock().0.lock()
    }

    /// What `find` finds, for as long as the task uses it.
    #[inline]
    pub fn lend(
        self,
        find: impl FnOnce(&T::Value) -> Result<&Arc<T::Kept>>,
    ) -> Result<Borrowed<T::Kept>> {
        let lock = &self.part.lock().0;
        if self.is_shared() {
            return find(&lock.lock()).cloned().map(Borrowed::owned);
        }
        order::check::<T::Level>();
        // SAFETY: only `change` changes the value, through an `OwnerRef` of a part. This is the only part, and its task is here: not
        // between `change` and the end of its guard, as the line above checks.
        let thing = Arc::as_ptr(find(unsafe { lock.peek() })?);
        let lender = OwnerRef::map(self, |own| &own.lender);
        // SAFETY: the value keeps a reference to it until this lender has settled: `change` and `share` see to that, and the part is not
        // replaced as long as `lender` lives.
        Ok(unsafe { Borrowed::lend(thing, lender) })
    }
}

/// What is lent. Changed by one task alone, and atomic as others can see the `Own`. Relaxed: nobody orders anything by it.
struct Lender<T>([AtomicPtr<T>; 2]);

impl<T> Lender<T> {
    /// Nothing is lent.
    const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; 2])
    }

    /// Makes all that is lent references.
    #[inline]
    fn settle(&self) {
        if self.0.iter().any(|note| !note.load(Ordering::Relaxed).is_null()) {
            self.settle_noted();
        }
    }

    #[cold]
    fn settle_noted(&self) {
        for note in &self.0 {
            let lent = note.load(Ordering::Relaxed);
            if !lent.is_null() {
                note.store(ptr::null_mut(), Ordering::Relaxed);
                // SAFETY: what is noted is kept by a reference of the keeper (`Borrowed::lend`), until now.
                unsafe { Arc::increment_strong_count(lent) };
            }
        }
    }

    /// Notes it, if there is room.
    #[inline]
    fn note(&self, lent: *const T) -> bool {
        let free = self.0.iter().find(|note| note.load(Ordering::Relaxed).is_null());
        free.inspect(|note| note.store(lent.cast_mut(), Ordering::Relaxed)).is_some()
    }

    /// Takes a note of the thing back, if there is one. Of two notes of one thing either will do.
    #[inline]
    fn unnote(&self, lent: *const T) -> bool {
        let there = self.0.iter().find(|note| ptr::eq(note.load(Ordering::Relaxed), lent));
        there.inspect(|note| note.store(ptr::null_mut(), Ordering::Relaxed)).is_some()
    }
}

/// A thing in use. It may become a reference of its own meanwhile.
pub struct Borrowed<T: 'static> {
    thing: ManuallyDrop<Arc<T>>,
    /// Where it is noted, unless it was a reference from the start.
    lender: Option<OwnerRef<Lender<T>>>,
}

impl<T> Borrowed<T> {
    /// A reference of its own.
    #[inline]
    pub fn owned(thing: Arc<T>) -> Self {
        Self { thing: ManuallyDrop::new(thing), lender: None }
    }

    /// The thing, which a keeper has a reference to.
    ///
    /// # Safety
    /// The keeper gives that reference up only after it has called `settle` of this lender.
    #[inline]
    unsafe fn lend(thing: *const T, lender: OwnerRef<Lender<T>>) -> Self {
        let is_noted = lender.note(thing);
        if !is_noted {
            // SAFETY: the keeper's reference is there.
            unsafe { Arc::increment_strong_count(thing) };
        }
        // SAFETY: of each thing there are as many of these as notes of it and references that `settle` made, whichever of them a drop takes;
        // and the keeper's own reference is there as long as there are notes.
        let thing = ManuallyDrop::new(unsafe { Arc::from_raw(thing) });
        Self { thing, lender: is_noted.then_some(lender) }
    }
}

impl<T> Deref for Borrowed<T> {
    type Target = Arc<T>;
    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.thing
    }
}

impl<T> Drop for Borrowed<T> {
    #[inline]
    fn drop(&mut self) {
        let is_noted =
            self.lender.as_ref().is_some_and(|lender| lender.unnote(Arc::as_ptr(&self.thing)));
        if !is_noted {
            // SAFETY: a reference of its own, dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.thing) };
        }
    }
}
