//! A search for ChaCha20 keys: 32 aligned bytes that make words which were drawn, as Alea's generator uses a key.
//!
//! A key makes groups of eight blocks, whose words stand interleaved, or single blocks in order; the first 32 bytes that
//! it makes replace it, and a base key's second 32 bytes are a CPU's key. So a key is also found one step before
//! the one that made the words.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

const BLOCKS: usize = 8;
const KEY: usize = 32;

type Key = [u8; KEY];
type Block = [u32; 16];

/// The 64-bit words of what was drawn, as the generator hands them out.
#[derive(Default)]
pub struct Words(HashSet<u64>);

impl Words {
    /// Adds the whole words of one draw.
    pub fn add(&mut self, drawn: &[u8]) {
        let (words, _) = drawn.as_chunks::<8>();
        self.0.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    }
}

/// What memory held that may be a key, with the words that each would make.
#[derive(Default)]
pub struct Candidates(HashMap<Key, Candidate>);

struct Candidate {
    /// All places of the same 32 bytes.
    at: Vec<usize>,
    made: Box<[u64]>,
}

impl Candidates {
    /// The candidates in these pages, but not in the ranges of bytes that are left out; those of `before` are not computed anew.
    pub fn of<'a>(
        pages: impl Iterator<Item = (usize, &'a [u8])>,
        without: &[Range<usize>],
        before: &mut Self,
    ) -> Self {
        let mut found = HashMap::new();
        for (start, bytes) in pages {
            for at in places(bytes) {
                let place = start + at;
                if without.iter().any(|range| place < range.end && range.start < place + KEY) {
                    continue;
                }
                let Some(key) = bytes[at..].first_chunk::<KEY>() else { continue };
                let candidate = found.entry(*key).or_insert_with(|| {
                    let made = match before.0.remove(key) {
                        Some(known) => known.made,
                        None => made(key),
                    };
                    Candidate { at: Vec::new(), made }
                });
                candidate.at.push(place);
            }
        }
        Self(found)
    }

    /// Where those are that make one of the words.
    pub fn that_make(&self, words: &Words) -> Vec<usize> {
        let makes =
            |candidate: &&Candidate| candidate.made.iter().any(|word| words.0.contains(word));
        self.0.values().filter(makes).flat_map(|candidate| candidate.at.clone()).collect()
    }

    /// Those outside these ranges of bytes.
    pub fn without(mut self, ranges: &[Range<usize>]) -> Self {
        let within = |at: usize| ranges.iter().any(|range| range.contains(&at));
        self.0.values_mut().for_each(|candidate| candidate.at.retain(|at| !within(*at)));
        self
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Where 32 bytes lie that look like a key, at multiples of eight.
fn places(page: &[u8]) -> Vec<usize> {
    let (words, _) = page.as_chunks::<8>();
    let (mut run, mut found) = (0, Vec::new());
    for (n, word) in words.iter().enumerate() {
        run = if may_be_random(u64::from_le_bytes(*word)) { run + 1 } else { 0 };
        if run >= 4 && is_varied(&page[n * 8 - 24..n * 8 + 8]) {
            found.push(n * 8 - 24);
        }
    }
    found
}

/// Whether eight bytes look like no address, small number or repetition. One perfectly random key in
/// 8,000 has a word that does not pass.
fn may_be_random(word: u64) -> bool {
    let (top, ones) = (word >> 48, word.count_ones());
    top != 0 && top != 0xffff && (12..=52).contains(&ones)
}

/// Whether 32 bytes differ as those of a key: at least 24 values, of 30 that are to be expected, and no text.
fn is_varied(bytes: &[u8]) -> bool {
    let mut seen = [0u64; 4];
    for &byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum::<u32>() >= 24 && !bytes.is_ascii()
}

/// All words that a key makes in its first group, as a CPU's, a stream's or the base's, and in the next of each.
fn made(key: &Key) -> Box<[u64]> {
    let mut words = Vec::new();
    let own = group(key);
    let below = key_of(&own[0][8..]);
    for first in [*key, below] {
        let made = group(&first);
        let rows: Vec<u32> = made.iter().map(|block| block[0]).collect();
        for group in [made, group(&key_of(&rows)), group(&key_of(&made[0][..8]))] {
            add_words(&group, &mut words);
        }
    }
    words.into()
}

/// The words of a group, interleaved and in order.
fn add_words(group: &[Block; BLOCKS], words: &mut Vec<u64>) {
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    for word in 0..16 {
        let (blocks, _) = group.as_chunks::<2>();
        words.extend(blocks.iter().map(|[low, high]| pair(low[word], high[word])));
    }
    for block in group {
        let (pairs, _) = block.as_chunks::<2>();
        words.extend(pairs.iter().map(|[low, high]| pair(*low, *high)));
    }
}

fn key_of(words: &[u32]) -> Key {
    let mut key = [0; KEY];
    key.chunks_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    key
}

/// The first eight blocks of a key.
fn group(key: &Key) -> [Block; BLOCKS] {
    std::array::from_fn(|counter| block(key, counter as u32))
}

/// One block of ChaCha20 (RFC 8439), nonce zero.
fn block(key: &Key, counter: u32) -> Block {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    let (words, _) = key.as_chunks::<4>();
    start[4..12].iter_mut().zip(words).for_each(|(to, word)| *to = u32::from_le_bytes(*word));
    start[12] = counter;
    let mut state = start;
    for _ in 0..10 {
        for shift in [0, 1] {
            for column in 0..4 {
                let at = |row: usize| row * 4 + (column + shift * row) % 4;
                quarter_round(&mut state, [at(0), at(1), at(2), at(3)]);
            }
        }
    }
    state.iter_mut().zip(start).for_each(|(word, start)| *word = word.wrapping_add(start));
    state
}

fn quarter_round(state: &mut Block, [a, b, c, d]: [usize; 4]) {
    for (left, right) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(left);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Key = [
        0x9b, 0x26, 0xf1, 0x44, 0xd0, 0x5a, 0x83, 0x17, 0xe8, 0x6c, 0x3f, 0xa2, 0x71, 0xbd, 0x09,
        0xc4, 0x58, 0x92, 0xed, 0x37, 0xab, 0x60, 0x1e, 0xf5, 0x4d, 0xc9, 0x70, 0x8e, 0x23, 0xb6,
        0xda, 0x15,
    ];

    #[test]
    fn the_block_is_that_of_the_standard() {
        // RFC 8439, appendix A.1, test vector 1 and 2.
        assert_eq!(block(&[0; KEY], 0)[..2], [0xade0_b876, 0x903d_f1a0]);
        assert_eq!(block(&[0; KEY], 1)[..2], [0xbee7_079f, 0x7a38_5155]);
    }

    /// Each way in which a key may have made a word: of its group, of the next, as a base key.
    #[test]
    fn a_key_is_found_by_what_it_made() {
        let mut memory = vec![0; 8192];
        memory[4096 + 0x568..4096 + 0x588].copy_from_slice(&SECRET);
        let own = group(&SECRET);
        let of_cpu = group(&key_of(&own[0][8..]));
        let next = group(&key_of(&own.map(|block| block[0])));
        let next_of_cpu = group(&key_of(&of_cpu.map(|block| block[0])));
        for group in [own, of_cpu, next, next_of_cpu] {
            for drawn in [[group[2][5], group[3][5]], [group[6][14], group[6][15]]] {
                let mut words = Words::default();
                words.add(&drawn.map(u32::to_le_bytes).concat());
                let pages = || memory.chunks(4096).enumerate().map(|(n, page)| (n * 4096, page));
                let found = Candidates::of(pages(), &[], &mut Candidates::default());
                assert_eq!(found.that_make(&words), [4096 + 0x568]);
                let home = 4096 + 0x560..4096 + 0x600;
                assert_eq!(Candidates::of(pages(), &[home], &mut Candidates::default()).count(), 0);
            }
        }
    }
}
