//! [`Words`]: a record that is being written into memory that somebody has for it.
//!
//! Owns nothing. Never writes beyond its room: what finds none is left out. Locks: none.
#![forbid(unsafe_code)]

/// Words, of which some are used.
pub(in super::super) struct Words<'a> {
    all: &'a mut [u64],
    used: usize,
}

impl<'a> Words<'a> {
    pub fn new(all: &'a mut [u64]) -> Self {
        Self { all, used: 0 }
    }

    /// Whether there was room for it.
    #[inline]
    pub fn put(&mut self, word: u64) -> bool {
        let Some(free) = self.all.get_mut(self.used) else { return false };
        *free = word;
        self.used += 1;
        true
    }

    #[inline]
    pub fn put_if(&mut self, wanted: bool, word: u64) {
        if wanted {
            self.put(word);
        }
    }

    /// How many are used.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// How many may follow.
    pub fn left(&self) -> usize {
        self.all.len() - self.used
    }

    /// Changes one that is used.
    #[inline]
    pub fn set(&mut self, at: usize, word: u64) {
        if let Some(used) = self.all[..self.used].get_mut(at) {
            *used = word;
        }
    }

    /// Writes what may be long, and leaves room for `last` words behind it.
    pub fn put_before(&mut self, last: usize, put: impl FnOnce(&mut Words<'_>)) {
        let end = self.all.len().saturating_sub(last).max(self.used);
        let mut first = Words { all: &mut self.all[..end], used: self.used };
        put(&mut first);
        self.used = first.used;
    }

    /// The record: the length of all goes into its head.
    pub fn finish(self) -> &'a [u64] {
        let record = &mut self.all[..self.used];
        if let Some(head) = record.first_mut() {
            *head = with_length(*head, self.used);
        }
        record
    }
}

/// The head of a record that has so many words.
pub(in super::super) fn with_length(head: u64, words: usize) -> u64 {
    (head & ((1 << 48) - 1)) | ((words * 8) as u64) << 48
}
