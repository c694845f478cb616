//! The input ring: 4096 bytes with a mark on every byte that ends a line.
//!
//! Positions only grow and wrap as `u32`; they are masked on access, so no position can leave the
//! ring. `tail <= canon <= head` and `tail <= committed <= head` (as distances) hold at all times.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Capacity of the input ring: the longest line is one byte short of it, plus its terminator.
pub const BUFFER_SIZE: usize = 4096;
const MASK: u32 = BUFFER_SIZE as u32 - 1;
const MARK_WORDS: usize = BUFFER_SIZE / 64;

/// A zeroed boxed array, or the error when there is no memory: never an abort.
pub fn try_boxed<const N: usize>() -> Result<Box<[u8; N]>, TryReserveError> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(N)?;
    bytes.resize(N, 0);
    match bytes.into_boxed_slice().try_into() {
        Ok(array) => Ok(array),
        Err(_) => unreachable!("the slice has exactly N bytes"),
    }
}

/// The ring itself.
pub struct InputBuffer {
    bytes: Box<[u8; BUFFER_SIZE]>,
    marks: [u64; MARK_WORDS],
    /// The next byte a reader takes.
    pub tail: u32,
    /// End of the last complete line: canonical readers stop here.
    pub canon: u32,
    /// End of what raw readers may take.
    pub committed: u32,
    /// Where the next received byte goes.
    pub head: u32,
}

impl InputBuffer {
    pub fn try_new() -> Result<Self, TryReserveError> {
        let bytes = try_boxed()?;
        Ok(Self { bytes, marks: [0; MARK_WORDS], tail: 0, canon: 0, committed: 0, head: 0 })
    }

    /// Bytes in the ring, finished lines or not.
    #[inline]
    pub fn len(&self) -> usize {
        self.head.wrapping_sub(self.tail) as usize
    }

    /// Bytes that belong to finished lines.
    #[inline]
    pub fn canon_len(&self) -> usize {
        self.canon.wrapping_sub(self.tail) as usize
    }

    /// Bytes a raw reader may take.
    #[inline]
    pub fn committed_len(&self) -> usize {
        self.committed.wrapping_sub(self.tail) as usize
    }

    #[inline]
    pub fn get(&self, position: u32) -> u8 {
        self.bytes[(position & MASK) as usize]
    }

    /// Appends a byte. The caller keeps to the room rule; an excess byte overwrites the oldest
    /// position of the ring but can never leave it.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.bytes[(self.head & MASK) as usize] = byte;
        self.head = self.head.wrapping_add(1);
    }

    /// Marks the position `head` as a line end, before the terminator is pushed.
    pub fn mark(&mut self, position: u32) {
        let bit = position & MASK;
        self.marks[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    pub fn unmark(&mut self, position: u32) {
        let bit = position & MASK;
        self.marks[(bit / 64) as usize] &= !(1 << (bit % 64));
    }

    pub fn is_marked(&self, position: u32) -> bool {
        let bit = position & MASK;
        self.marks[(bit / 64) as usize] & (1 << (bit % 64)) != 0
    }

    pub fn clear_marks(&mut self) {
        self.marks = [0; MARK_WORDS];
    }

    /// The distance from `tail` to the first marked byte within `limit` bytes.
    pub fn find_mark(&self, limit: usize) -> Option<usize> {
        let mut done = 0;
        while done < limit {
            let bit = (self.tail.wrapping_add(done as u32) & MASK) as usize;
            let word = self.marks[bit / 64] >> (bit % 64);
            if word != 0 {
                let found = done + word.trailing_zeros() as usize;
                return (found < limit).then_some(found);
            }
            done += 64 - bit % 64;
        }
        None
    }

    /// Up to `limit` bytes from the tail, as the two runs the ring breaks them into.
    pub fn peek(&self, limit: usize) -> (&[u8], &[u8]) {
        let n = limit.min(self.len()).min(BUFFER_SIZE);
        let start = (self.tail & MASK) as usize;
        let first = n.min(BUFFER_SIZE - start);
        (&self.bytes[start..start + first], &self.bytes[..n - first])
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        (self.tail, self.canon, self.committed, self.head) = (0, 0, 0, 0);
        self.clear_marks();
    }
}
