//! Identifiers: an index of 15 bits, and above it a sequence number, so that an old identifier does not name a new object.
//!
//! As Linux gives them: indices go round, among the first 64 while few are in use, among half as many again as are in use
//! otherwise; each time round the sequence number grows by one.

/// Indices that there are.
pub const MOST: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 15;
/// Sequence numbers that there are.
const SEQUENCES: u32 = (i32::MAX >> INDEX_BITS) as u32;
/// Indices that are gone round at least.
const LEAST_ROUND: usize = 64;

/// The index of an identifier.
pub const fn index_of(id: i32) -> u16 {
    (id & (MOST as i32 - 1)) as u16
}

/// The sequence number of an identifier that is not negative.
pub const fn sequence_of(id: i32) -> u16 {
    (id >> INDEX_BITS) as u16
}

/// The identifiers of one kind of object.
pub struct Numbers {
    taken: [u64; MOST / 64],
    used: usize,
    /// Where the search for a free index begins.
    next: usize,
    /// One more than the index given last.
    after_last: usize,
    sequence: u32,
}

impl Numbers {
    /// None is taken.
    pub const fn new() -> Self {
        Self { taken: [0; MOST / 64], used: 0, next: 0, after_last: 0, sequence: 0 }
    }

    /// How many are in use.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// A new identifier, of at most `limit` indices; with `wish` one with the sequence number of that and its index or
    /// a higher one. `None` if there is none.
    pub fn take(&mut self, limit: usize, wish: Option<i32>) -> Option<i32> {
        if let Some(wish) = wish {
            let index = self.free_in(usize::from(index_of(wish)), MOST)?;
            self.set(index);
            return Some(i32::from(sequence_of(wish)) << INDEX_BITS | index as i32);
        }
        let round = (self.used * 3 / 2).max(LEAST_ROUND).min(limit).min(MOST);
        let index = self.free_in(self.next, round).or_else(|| self.free_in(0, round))?;
        if index < self.after_last {
            self.sequence = (self.sequence + 1) % SEQUENCES;
        }
        (self.next, self.after_last) = (index + 1, index + 1);
        self.set(index);
        Some((self.sequence << INDEX_BITS) as i32 | index as i32)
    }

    /// The identifier's index is free again.
    pub fn give_back(&mut self, id: i32) {
        let index = usize::from(index_of(id));
        if self.taken[index / 64] & 1 << (index % 64) != 0 {
            self.taken[index / 64] &= !(1 << (index % 64));
            self.used -= 1;
        }
    }

    /// The highest index in use.
    pub fn highest(&self) -> Option<usize> {
        let word = self.taken.iter().rposition(|&word| word != 0)?;
        Some(word * 64 + 63 - self.taken[word].leading_zeros() as usize)
    }

    fn set(&mut self, index: usize) {
        self.taken[index / 64] |= 1 << (index % 64);
        self.used += 1;
    }

    /// The first free index of `from..end`.
    fn free_in(&self, from: usize, end: usize) -> Option<usize> {
        let mut at = from;
        while at < end {
            let free = !self.taken[at / 64] >> (at % 64);
            if free != 0 {
                let found = at + free.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn indices_go_round_and_the_sequence_grows() {
        let mut numbers = Numbers::new();
        for round in 0..3 {
            for index in 0..64 {
                let id = numbers.take(4096, None).unwrap();
                assert_eq!((sequence_of(id), index_of(id)), (round, index));
                numbers.give_back(id);
            }
        }
        assert_eq!((numbers.used(), numbers.highest()), (0, None));
    }

    #[test]
    fn more_indices_as_more_are_used() {
        let mut numbers = Numbers::new();
        let ids: Vec<i32> = (0..MOST).map(|_| numbers.take(MOST, None).unwrap()).collect();
        assert_eq!(numbers.take(MOST, None), None);
        assert_eq!(ids.iter().map(|&id| index_of(id)).collect::<BTreeSet<_>>().len(), MOST);
        assert_eq!(numbers.highest(), Some(MOST - 1));
        numbers.give_back(ids[MOST - 1]);
        assert_eq!(numbers.highest(), Some(MOST - 2));
    }

    #[test]
    fn the_limit_bounds_the_indices() {
        let mut numbers = Numbers::new();
        assert_eq!(numbers.take(0, None), None);
        for index in 0..3 {
            assert_eq!(numbers.take(3, None), Some(index));
        }
        assert_eq!(numbers.take(3, None), None);
        numbers.give_back(1);
        assert_eq!(numbers.take(3, None), Some(1 << 15 | 1));
    }

    #[test]
    fn the_sequence_starts_anew_at_its_end() {
        let mut numbers = Numbers::new();
        for _ in 0..SEQUENCES as usize * 64 {
            let id = numbers.take(MOST, None).unwrap();
            assert!(id >= 0);
            numbers.give_back(id);
        }
        assert_eq!(numbers.take(MOST, None), Some(0));
    }

    #[test]
    fn a_wish_is_met_or_the_next_index_taken() {
        let mut numbers = Numbers::new();
        assert_eq!(numbers.take(64, Some(7 << 15 | 100)), Some(7 << 15 | 100));
        assert_eq!(numbers.take(64, Some(7 << 15 | 100)), Some(7 << 15 | 101));
        assert_eq!(numbers.take(64, Some(MOST as i32 - 1)), Some(MOST as i32 - 1));
        assert_eq!(numbers.take(64, Some(MOST as i32 - 1)), None);
    }

    proptest! {
        #[test]
        fn no_index_is_given_twice(steps in proptest::collection::vec(0usize..3, 1..600)) {
            let mut numbers = Numbers::new();
            let mut held: Vec<i32> = Vec::new();
            for (at, step) in steps.into_iter().enumerate() {
                if step == 0 && !held.is_empty() {
                    numbers.give_back(held.swap_remove(at % held.len()));
                } else {
                    let id = numbers.take(MOST, None).unwrap();
                    prop_assert!(held.iter().all(|&other| index_of(other) != index_of(id)));
                    held.push(id);
                }
                prop_assert_eq!(numbers.used(), held.len());
                let highest = held.iter().map(|&id| usize::from(index_of(id))).max();
                prop_assert_eq!(numbers.highest(), highest);
            }
        }
    }
}
