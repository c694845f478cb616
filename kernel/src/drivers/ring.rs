//! [`Ring`]: bytes on their way between a device and a terminal.
//!
//! Owns nothing but its entries. Never allocates. Locks: none, the owner has one around it.
#![forbid(unsafe_code)]

/// A ring of `N` entries, `N` a power of two.
pub struct Ring<T, const N: usize> {
    entries: [T; N],
    head: usize,
    tail: usize,
}

impl<T: Copy, const N: usize> Ring<T, N> {
    /// An empty one; `fill` is what its places hold until they are used.
    pub const fn new(fill: T) -> Self {
        Self { entries: [fill; N], head: 0, tail: 0 }
    }

    /// How many entries wait.
    pub fn len(&self) -> usize {
        self.head.wrapping_sub(self.tail)
    }

    /// Adds an entry, if there is room.
    pub fn push(&mut self, entry: T) -> bool {
        if self.len() == N {
            return false;
        }
        self.entries[self.head & (N - 1)] = entry;
        self.head = self.head.wrapping_add(1);
        true
    }

    /// Takes the oldest entry.
    pub fn pop(&mut self) -> Option<T> {
        if self.len() == 0 {
            return None;
        }
        let entry = self.entries[self.tail & (N - 1)];
        self.tail = self.tail.wrapping_add(1);
        Some(entry)
    }

    /// Throws all entries away.
    pub fn clear(&mut self) {
        self.tail = self.head;
    }
}
