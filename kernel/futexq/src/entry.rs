//! [`Entry`]: what a waiter brings to be queued. [`Taken`]: those that were taken out.
//!
//! An entry is one block of memory, made before any lock is taken, that carries the links of whatever it is
//! part of: so queueing, moving and taking out need no memory. Locks: none.

use crate::place::Rank;
use crate::{Key, Kind, Waiter};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// Memory is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// A waiter with what it waits for.
pub struct Entry<K, W>(Box<[Inner<K, W>; 1]>);

pub(crate) type Link<K, W> = Option<Entry<K, W>>;

pub struct Inner<K, W> {
    pub(crate) key: K,
    pub(crate) kind: Kind<K>,
    bitset: u32,
    waiter: W,
    pub(crate) rank: Rank,
    /// Of the tree whose root it is.
    pub(crate) height: u8,
    pub(crate) left: Link<K, W>,
    pub(crate) right: Link<K, W>,
}

impl<K: Key, W: Waiter> Entry<K, W> {
    /// An entry for somebody who waits at `key`, to be woken by those whose bitset meets `bitset`.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn try_new(key: K, kind: Kind<K>, bitset: u32, waiter: W) -> Result<Self, NoMemory> {
        Self::try_new_in(key, kind, bitset, waiter, |inner| {
            let mut one = Vec::new();
            one.try_reserve_exact(1).ok()?;
            one.push(inner);
            one.try_into().ok()
        })
    }

    /// As [`try_new`](Self::try_new), where the caller has a quicker way to a block of memory.
    ///
    /// # Errors
    /// [`NoMemory`].
    #[inline]
    pub fn try_new_in(
        key: K,
        kind: Kind<K>,
        bitset: u32,
        waiter: W,
        place: impl FnOnce(Inner<K, W>) -> Option<Box<[Inner<K, W>; 1]>>,
    ) -> Result<Self, NoMemory> {
        let rank = Rank::default();
        let inner = Inner { key, kind, bitset, waiter, rank, height: 1, left: None, right: None };
        place(inner).map(Self).ok_or(NoMemory)
    }

    /// The word.
    #[inline]
    pub fn key(&self) -> K {
        self.key
    }

    /// What it waits for there.
    pub fn kind(&self) -> Kind<K> {
        self.kind
    }

    /// Who waits.
    pub fn waiter(&self) -> &W {
        &self.waiter
    }

    /// Makes it one for another word, to be queued there.
    pub fn retarget(&mut self, key: K, kind: Kind<K>) {
        self.key = key;
        self.kind = kind;
    }

    pub(crate) fn meets(&self, bitset: u32) -> bool {
        self.bitset & bitset != 0
    }
}

impl<K, W> Deref for Entry<K, W> {
    type Target = Inner<K, W>;
    #[inline]
    fn deref(&self) -> &Inner<K, W> {
        &self.0[0]
    }
}

impl<K, W> DerefMut for Entry<K, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Inner<K, W> {
        &mut self.0[0]
    }
}

/// Waiters to be woken, with nothing locked.
pub struct Taken<K, W> {
    /// Linked by `right`, the last one first.
    newest: Link<K, W>,
    len: usize,
}

impl<K, W> Taken<K, W> {
    /// Nobody.
    #[expect(clippy::new_without_default, reason = "a default would say less")]
    pub const fn new() -> Self {
        Self { newest: None, len: 0 }
    }

    /// How many were taken.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody was.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn push(&mut self, mut entry: Entry<K, W>) {
        entry.right = self.newest.take();
        self.newest = Some(entry);
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> Link<K, W> {
        let mut entry = self.newest.take()?;
        self.newest = entry.right.take();
        self.len -= 1;
        Some(entry)
    }

    /// Hands them out, first come first: how many.
    #[inline]
    pub fn drain(mut self, mut wake: impl FnMut(&W)) -> usize {
        let count = self.len;
        // One needs no order.
        if count == 1 {
            if let Some(entry) = self.pop() {
                wake(&entry.waiter);
            }
            return count;
        }
        let mut in_order = Self::new();
        while let Some(entry) = self.pop() {
            in_order.push(entry);
        }
        while let Some(entry) = in_order.pop() {
            wake(&entry.waiter);
        }
        count
    }
}

impl<K, W> Drop for Taken<K, W> {
    /// One by one: a long chain would overflow the stack.
    #[inline]
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
