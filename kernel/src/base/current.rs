//! [`Current`]: the token that only the running task holds.
//!
//! Owns nothing. Must never be made for a task that does not run here. No locks.

use core::marker::PhantomData;
use core::ops::Deref;

/// The running task, or a part of it, in its own hands.
///
/// What only the task itself may do asks for one. No other thread can come by it: it is neither `Send` nor `Sync`,
/// so it stays on the stack of the task, and of the interrupt handlers that borrow that.
pub struct Current<T: 'static>(&'static T, PhantomData<*mut ()>);

impl<T> Clone for Current<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Current<T> {}

impl<T> Deref for Current<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> Current<T> {
    /// The token of a task.
    ///
    /// # Safety
    /// The calling task is `task`, or an interrupt handler that runs on its stack, and `task` lives as long as what is on
    /// that stack.
    #[inline]
    pub unsafe fn new(task: &'static T) -> Self {
        Self(task, PhantomData)
    }

    /// A part of it.
    #[inline]
    pub fn map<U>(self, part: impl for<'a> FnOnce(&'a T) -> &'a U) -> Current<U> {
        Current(part(self.0), PhantomData)
    }

    /// A part of it that there may be.
    #[inline]
    pub fn find<U>(self, part: impl for<'a> FnOnce(&'a T) -> Option<&'a U>) -> Option<Current<U>> {
        part(self.0).map(|found| Current(found, PhantomData))
    }
}
