//! [`Members`]: the children of a process, or its threads, in no order.
//!
//! Each knows its index, so that one leaves in O(1) however many there are. Who owns the list has the lock;
//! an index is used only under it, which is why Relaxed is enough.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What is a member of at most one such list.
pub(in crate::process) trait Member {
    /// Its index there.
    fn place(&self) -> &AtomicUsize;
}

/// Room for so many is never given back.
const SMALL: usize = 64;

pub(in crate::process) struct Members<T>(Vec<Arc<T>>);

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Member> Members<T> {
    /// Adds one; false when memory is out.
    #[must_use]
    pub(in crate::process) fn push(&mut self, member: Arc<T>) -> bool {
        if self.0.try_reserve(1).is_err() {
            return false;
        }
        member.place().store(self.0.len(), Ordering::Relaxed);
        #[expect(clippy::disallowed_methods, reason = "there is room")]
        self.0.push(member);
        true
    }

    pub(in crate::process) fn iter(&self) -> core::slice::Iter<'_, Arc<T>> {
        self.0.iter()
    }

    /// The one that has been there longest, until that one leaves.
    pub(super) fn first(&self) -> Option<&Arc<T>> {
        self.0.first()
    }

    pub(in crate::process) fn contains(&self, member: &T) -> bool {
        let at = member.place().load(Ordering::Relaxed);
        self.0.get(at).is_some_and(|there| core::ptr::eq(&**there, member))
    }

    /// Takes one out, if it is there.
    pub(in crate::process) fn remove(&mut self, member: &T) -> Option<Arc<T>> {
        if !self.contains(member) {
            return None;
        }
        let at = member.place().load(Ordering::Relaxed);
        let gone = self.0.swap_remove(at);
        if let Some(moved) = self.0.get(at) {
            moved.place().store(at, Ordering::Relaxed);
        }
        self.fit();
        Some(gone)
    }

    /// Gives back half of the room when a quarter is used: process 1 has had every orphan.
    fn fit(&mut self) {
        let room = self.0.capacity();
        if room <= SMALL || self.0.len() > room / 4 {
            return;
        }
        let mut fitting = Vec::new();
        // Without memory it stays as it is until the next one leaves.
        if fitting.try_reserve_exact(room / 2).is_ok() {
            #[expect(clippy::disallowed_methods, reason = "there is room")]
            fitting.append(&mut self.0);
            self.0 = fitting;
        }
    }

    /// Takes out one that is not `member`.
    pub(in crate::process) fn remove_other(&mut self, member: &T) -> Option<Arc<T>> {
        let last = self.0.iter().rev().take(2).find(|one| !core::ptr::eq(&***one, member))?.clone();
        self.remove(&last)
    }
}
