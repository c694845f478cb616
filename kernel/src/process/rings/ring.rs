//! A CPU's ring: written by the CPU itself with interrupts off, emptied by one reader at a time.
//!
//! Owns the words. The head moves when a record is whole, the tail when it has been read: neither side waits for the other. A
//! record that finds no room is counted. Locks: none.

use super::record::{self, MAX_WORDS};
use crate::mm::fallible::TryGrow;
use abi::Result;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Who reads.
pub(super) trait Taker {
    /// For how many words it has room.
    fn room(&self) -> usize;
    /// Takes whole records; false if it does not.
    fn take(&mut self, records: &[u64]) -> Result<bool>;
}

/// Words that are read at once.
const BATCH: usize = 2 * MAX_WORDS;

/// The ring of one CPU for one session.
pub(super) struct Ring {
    /// What begins before the end of the ring goes on behind it: no record is cut.
    words: Vec<AtomicU64>,
    mask: usize,
    half: usize,
    /// Words written so far.
    head: AtomicU64,
    /// Words read so far.
    tail: AtomicU64,
    /// Records that were not written since the reader was last told.
    lost: AtomicU64,
}

impl Ring {
    /// A ring of `words`, a power of two.
    pub fn new(words: usize) -> Result<Self> {
        debug_assert!(words.is_power_of_two() && words > MAX_WORDS);
        let mut room = Vec::new();
        room.try_extend((0..words + MAX_WORDS).map(|_| AtomicU64::new(0)))?;
        Ok(Self {
            words: room,
            mask: words - 1,
            half: words / 2,
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// Where a record of so many words goes, if there is room, and where the head is then. On the ring's CPU with interrupts
    /// off.
    #[inline(always)]
    fn place(&self, len: usize) -> Option<(&[AtomicU64], u64)> {
        // Relaxed: this CPU alone moves it.
        let head = self.head.load(Ordering::Relaxed);
        let after = head.wrapping_add(len as u64);
        // Acquire: pairs with the Release in `read`: the words have been read.
        let used = after.wrapping_sub(self.tail.load(Ordering::Acquire)) as usize;
        if used > self.mask {
            // Relaxed: a count.
            self.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some((self.words.get(head as usize & self.mask..)?, after))
    }

    /// The words before `after` are written. Whether a half of the ring has just been filled.
    #[inline(always)]
    fn publish(&self, len: usize, after: u64) -> bool {
        // Release: pairs with the Acquire in `read`.
        self.head.store(after, Ordering::Release);
        (after.wrapping_sub(len as u64) ^ after) as usize & self.half != 0
    }

    /// Writes a record, on the ring's CPU with interrupts off. Whether a half of the ring has just been filled.
    #[inline]
    pub fn write(&self, record: &[u64]) -> bool {
        let Some((place, after)) = self.place(record.len()) else { return false };
        for (to, from) in place.iter().zip(record) {
            // Relaxed: the head publishes them.
            to.store(*from, Ordering::Relaxed);
        }
        self.publish(record.len(), after)
    }

    /// The same with a record that `fill` writes where it belongs.
    #[inline(always)]
    pub fn write_in_place<const N: usize>(&self, fill: impl FnOnce(&[AtomicU64; N])) -> bool {
        let Some((place, after)) = self.place(N) else { return false };
        let Some(place) = place.first_chunk() else { return false };
        fill(place);
        self.publish(N, after)
    }

    /// Whether there is nothing to be read, and nothing to be told as lost.
    pub fn is_empty(&self) -> bool {
        // Relaxed: a look; `read` decides.
        self.head.load(Ordering::Relaxed) == self.tail.load(Ordering::Relaxed)
            && self.lost.load(Ordering::Relaxed) == 0
    }

    /// Gives `taker` the records that stand here now, many at once, until it has no room or wants no more; what it did not take
    /// stays. Whether it took all. One reader at a time.
    pub fn read(&self, taker: &mut dyn Taker) -> Result<bool> {
        // Acquire: pairs with the Release in `write`.
        let head = self.head.load(Ordering::Acquire);
        let mut batch = [0; BATCH];
        loop {
            // Relaxed: readers come one at a time.
            let tail = self.tail.load(Ordering::Relaxed);
            if tail == head {
                return Ok(true);
            }
            let most = taker.room().min(BATCH);
            let mut len = 0;
            loop {
                let at = tail.wrapping_add(len as u64);
                if at == head {
                    break;
                }
                let next = record::len(self.word(at)).clamp(1, MAX_WORDS);
                let (start, place) = (tail as usize & self.mask, at as usize & self.mask);
                // What comes behind the end of the ring begins anew.
                if len + next > most || place < start {
                    break;
                }
                len += next;
            }
            if len == 0 {
                return Ok(false);
            }
            self.copy(tail, &mut batch[..len]);
            if !taker.take(&batch[..len])? {
                return Ok(false);
            }
            // Release: pairs with the Acquire in `write`.
            self.tail.store(tail.wrapping_add(len as u64), Ordering::Release);
        }
    }

    fn copy(&self, from: u64, to: &mut [u64]) {
        let places = self.words.iter().skip(from as usize & self.mask);
        for (to, from) in to.iter_mut().zip(places) {
            // Relaxed: published by the head.
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// How many records have been lost, of which the caller tells.
    pub fn take_lost(&self) -> u64 {
        // Relaxed: a count.
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// They could not be told of.
    pub fn give_back_lost(&self, lost: u64) {
        // Relaxed: a count.
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }

    fn word(&self, at: u64) -> u64 {
        // Relaxed: published by the head.
        self.words[at as usize & self.mask].load(Ordering::Relaxed)
    }
}
