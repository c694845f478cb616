//! [`Heap`]: a binary heap whose room comes in pieces.
//!
//! So a queue with room for thousands of tasks asks nobody for more than one page at a time.
//!
//! Owns the values in it and their room, which it never gives back. Never allocates but in [`Heap::reserve`]. Invariants: the first `len` places hold a value
//! each, none of which is greater than the one at its parent's place; all others are empty. Whoever has it locked uses it.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Places of a piece: with a task's reference they fill a page.
pub const PIECE: usize = 128;

/// The greatest value first.
pub(crate) struct Heap<T> {
    pieces: Vec<Vec<Option<T>>>,
    len: usize,
}

impl<T> Heap<T> {
    pub(crate) const fn new() -> Self {
        Self { pieces: Vec::new(), len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many values there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// Bytes of a piece's places; of those of all of them nothing but their addresses lies in one room.
    pub(crate) const PIECE_BYTES: usize = PIECE * size_of::<Option<T>>();

    /// Makes room for `total` values in all.
    pub(crate) fn reserve(&mut self, total: usize) -> Result<(), TryReserveError> {
        let more = total.div_ceil(PIECE).saturating_sub(self.pieces.len());
        self.pieces.try_reserve_exact(more)?;
        for _ in 0..more {
            let mut piece = Vec::new();
            piece.try_reserve_exact(PIECE)?;
            piece.extend(core::iter::repeat_with(|| None).take(PIECE));
            self.pieces.push(piece);
        }
        Ok(())
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)?.as_ref()
    }

    /// What was at a place, which holds `value` now.
    #[inline(always)]
    fn put(&mut self, at: usize, value: Option<T>) -> Option<T> {
        let slot = self.pieces.get_mut(at / PIECE).and_then(|piece| piece.get_mut(at % PIECE));
        debug_assert!(slot.is_some(), "room is reserved before it is used");
        slot.and_then(|slot| core::mem::replace(slot, value))
    }

    /// All values, in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten().map_while(Option::as_ref)
    }
}

impl<T: Ord> Heap<T> {
    /// Adds a value, for which there must be room.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        let at = self.len;
        self.len += 1;
        match at {
            // Most often there is none or one: the way through the pieces is apart.
            0 => drop(self.put(0, Some(value))),
            _ => self.rise(at, value),
        }
    }

    /// Takes the greatest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.len != 1 {
            return self.remove(0);
        }
        self.len = 0;
        self.put(0, None)
    }

    /// Takes the value at a place of [`iter`](Self::iter).
    #[inline(never)]
    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let end = self.len.checked_sub(1).filter(|end| at <= *end)?;
        self.len = end;
        let last = self.put(end, None)?;
        if at == end {
            return Some(last);
        }
        let taken = self.put(at, None);
        self.settle(at, last);
        taken
    }

    /// Puts a value at the empty place `at`, or above it if it is greater than those that are there.
    #[inline(never)]
    fn rise(&mut self, mut at: usize, value: T) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.get(parent).is_none_or(|above| *above >= value) {
                break;
            }
            let above = self.put(parent, None);
            self.put(at, above);
            at = parent;
        }
        self.put(at, Some(value));
    }

    /// Puts a value at the empty place `at`, or where it belongs above or below.
    fn settle(&mut self, mut at: usize, value: T) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(mut greater) = self.get(left) else { break };
            let mut below = left;
            if let Some(other) = self.get(right)
                && other > greater
            {
                (greater, below) = (other, right);
            }
            if *greater <= value {
                break;
            }
            let greater = self.put(below, None);
            self.put(at, greater);
            at = below;
        }
        self.rise(at, value);
    }
}
