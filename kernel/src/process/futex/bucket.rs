//! One bucket of the table of waiters: those of all its words, in the order in which they came.
//!
//! Ten thousand threads may wait at one word, and none that is woken or gives up moves or passes by all
//! others: the first in line leaves from the front, and one that gives up is found by its number. The bucket
//! neither wakes nor locks: the table in the module above has the locks. Its memory stays for the next
//! waiter, unless there were many.

use super::{Key, Kind, Waiter};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use smallvec::SmallVec;

/// Waiters to be woken: most calls wake one.
pub(super) type Taken = SmallVec<[Arc<Waiter>; 2]>;

/// What an empty bucket keeps.
const KEPT: usize = 64;

pub(super) struct Queued {
    pub key: Key,
    pub kind: Kind,
    pub waiter: Arc<Waiter>,
    /// Ascending from the front; also in the waiter.
    place: u64,
}

pub(super) struct Bucket {
    waiters: VecDeque<Queued>,
    next: u64,
}

impl Bucket {
    pub const fn new() -> Self {
        Self { waiters: VecDeque::new(), next: 0 }
    }

    /// Adds a waiter behind all others.
    pub fn push(&mut self, key: Key, kind: Kind, waiter: Arc<Waiter>) {
        let place = self.next;
        self.next += 1;
        waiter.set_place(place);
        self.waiters.push_back(Queued { key, kind, waiter, place });
    }

    /// The waiters of a word, first come first.
    pub fn of(&self, key: Key) -> impl Iterator<Item = &Queued> {
        self.waiters.iter().filter(move |queued| queued.key == key)
    }

    /// Takes up to `count` waiters that are to be woken, whose bitset meets `bitset`.
    ///
    /// # Errors
    /// `EINVAL` at one that waits for a lock that lends priority.
    pub fn take(&mut self, key: Key, count: usize, bitset: u32, taken: &mut Taken) -> Result<()> {
        let mut at = 0;
        while taken.len() < count {
            let Some(queued) = self.waiters.get(at) else { break };
            if queued.key != key {
                at += 1;
            } else if queued.kind != Kind::Plain {
                return Err(Errno::EINVAL);
            } else if queued.waiter.bitset & bitset == 0 {
                at += 1;
            } else {
                taken.extend(self.remove(at).map(|queued| queued.waiter));
            }
        }
        Ok(())
    }

    /// Moves up to `count` waiters of a word to another one of this bucket.
    ///
    /// # Errors
    /// As [`Self::take`]'s.
    pub fn move_within(&mut self, from: Key, to: Key, count: usize) -> Result<usize> {
        let mut moved = 0;
        for queued in self.waiters.iter_mut().filter(|q| q.key == from).take(count) {
            if queued.kind != Kind::Plain {
                return Err(Errno::EINVAL);
            }
            queued.key = to;
            moved += 1;
        }
        Ok(moved)
    }

    /// Moves up to `count` waiters of a word to another one of another bucket.
    ///
    /// # Errors
    /// As [`Self::take`]'s.
    pub fn move_to(
        &mut self,
        target: &mut Self,
        (from, to): (Key, Key),
        count: usize,
    ) -> Result<usize> {
        let (mut moved, mut at) = (0, 0);
        while moved < count {
            let Some(queued) = self.waiters.get(at) else { break };
            if queued.key != from {
                at += 1;
                continue;
            }
            if queued.kind != Kind::Plain {
                return Err(Errno::EINVAL);
            }
            if let Some(queued) = self.remove(at) {
                target.push(to, queued.kind, queued.waiter);
            }
            moved += 1;
        }
        Ok(moved)
    }

    /// Takes a waiter out; whether it was here.
    pub fn leave(&mut self, waiter: &Arc<Waiter>) -> bool {
        let place = waiter.place();
        let Ok(at) = self.waiters.binary_search_by_key(&place, |queued| queued.place) else {
            return false;
        };
        // In another bucket somebody else may have the same number.
        self.waiters.get(at).is_some_and(|queued| Arc::ptr_eq(&queued.waiter, waiter))
            && self.remove(at).is_some()
    }

    fn remove(&mut self, at: usize) -> Option<Queued> {
        let gone = self.waiters.remove(at);
        if self.waiters.is_empty() {
            self.waiters.shrink_to(KEPT);
        }
        gone
    }
}
