//! ChaCha20 keys and keystream blocks: the seam between the generator and the vector unit.
//!
//! Owns [`Key`], the trait [`BlockGenerator`] and its portable implementation. It must never keep a
//! key or a block after a call, on the stack neither. Lock rules: none.
//!
//! A kernel that is built for a soft-float target cannot let the compiler emit vector code, so the
//! fast implementations are its own assembly behind [`BlockGenerator`]; [`Portable`] is always
//! there, and is what they are checked against.

use core::fmt;

use zeroize::{ZeroizeOnDrop, optimization_barrier};

use self::wipe::{wipe, wipe_stack};

/// Bytes of a ChaCha20 block.
pub const BLOCK_LEN: usize = 64;

/// Bytes of a ChaCha20 key.
pub const KEY_LEN: usize = 32;

/// Blocks that the batch is refilled with at once, and the group in which a [`BlockGenerator`] may
/// shuffle words: eight blocks fill a 256-bit register per state word.
pub const GROUP_BLOCKS: usize = 8;

/// One block of keystream.
pub type Block = [u8; BLOCK_LEN];

/// A ChaCha20 key, wiped when it is dropped and never shown.
#[repr(C, align(16))]
pub struct Key([u8; KEY_LEN]);

impl Key {
    /// A key made of `bytes`; the caller wipes its own copy.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The place of a key that does not exist yet. Nothing may be generated from it.
    ///
    /// A key is made where it is to stay: moving a value leaves its bytes behind in the old place, where no
    /// `Drop` wipes them. So nothing in this crate hands over a key that exists.
    pub const fn vacant() -> Self {
        Self([0; KEY_LEN])
    }

    /// The key's bytes, for a [`BlockGenerator`].
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    pub(crate) const fn as_mut_bytes(&mut self) -> &mut [u8; KEY_LEN] {
        &mut self.0
    }

    /// Takes the key out of the first bytes of `block`, which are wiped: the step that makes what
    /// was generated before unrecoverable.
    pub(crate) fn take_from(&mut self, block: &mut Block) {
        if let Some(first) = block.first_chunk_mut::<KEY_LEN>() {
            self.take(first);
        }
    }

    /// Takes the key out of `bytes`, which are wiped.
    pub(crate) fn take(&mut self, bytes: &mut [u8; KEY_LEN]) {
        self.0.copy_from_slice(bytes);
        // Word by word, where `zeroize` goes byte by byte; the barrier keeps it from being left out.
        *bytes = [0; KEY_LEN];
        optimization_barrier(bytes);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl ZeroizeOnDrop for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Makes ChaCha20 keystream (RFC 8439, 32-bit counter, nonce zero).
///
/// # Contract
///
/// `fill(key, counter, out)` overwrites `out` with the blocks `counter .. counter + out.len()`.
/// Within each whole group of [`GROUP_BLOCKS`] blocks, counted from the start of `out`, the 32-bit
/// words may be in any fixed order: a permutation of keystream is keystream, and a vector unit need
/// not transpose what nobody needs in order. Nothing but `out` may depend on the key afterwards:
/// registers and stack are wiped. The counter never wraps: callers stay below 2^32 blocks.
///
/// An implementation that uses registers of user space brackets its use itself.
pub trait BlockGenerator {
    /// Overwrites `out` with keystream.
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]);
}

impl<B: BlockGenerator + ?Sized> BlockGenerator for &B {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        (**self).fill(key, counter, out);
    }
}

/// In integer registers, in order: RFC 8439 and no more. It is the crate's own, because a cipher crate's vector code does
/// not compile, unoptimised, for targets without vector registers; the `chacha20` crate is what the tests compare it with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

/// More stack than the rounds use: the compiler spills words of the state there, all of them where it does not optimise.
const SCRUB: usize = 1024;

/// Words of the state.
const STATE: usize = 16;

impl BlockGenerator for Portable {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        keystream(key, counter, out);
        wipe_stack::<SCRUB>();
    }
}

/// Not inlined, so that its frame lies where [`wipe_stack`] wipes.
#[inline(never)]
fn keystream(key: &Key, counter: u32, out: &mut [Block]) {
    // "expand 32-byte k", the key, the counter, and a nonce of zero.
    let mut initial = [0u32; STATE];
    initial[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    let (words, _) = key.as_bytes().as_chunks::<4>();
    for (to, word) in initial[4..12].iter_mut().zip(words) {
        *to = u32::from_le_bytes(*word);
    }
    initial[12] = counter;
    let mut state = [0u32; STATE];
    for block in out {
        state = initial;
        (0..10).for_each(|_| double_round(&mut state));
        let (words, _) = block.as_chunks_mut::<4>();
        for ((to, word), start) in words.iter_mut().zip(&state).zip(&initial) {
            *to = word.wrapping_add(*start).to_le_bytes();
        }
        initial[12] = initial[12].wrapping_add(1);
    }
    wipe(&mut state);
    wipe(&mut initial);
}

/// Columns, then diagonals.
#[inline(always)]
fn double_round(state: &mut [u32; STATE]) {
    for shift in [0, 1] {
        for column in 0..4 {
            let at = |row: usize| row * 4 + (column + shift * row) % 4;
            quarter_round(state, [at(0), at(1), at(2), at(3)]);
        }
    }
}

#[inline(always)]
fn quarter_round(state: &mut [u32; STATE], [a, b, c, d]: [usize; 4]) {
    for (left, right) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(left);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(right);
    }
}

pub(crate) mod wipe;
