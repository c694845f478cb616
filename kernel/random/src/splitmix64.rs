//! SplitMix64: a lock-free generator for the first moments of boot and for what is no secret.
//!
//! Owns the recurrence and the once-only seeding. It must never serve a secret once a
//! [cryptographic generator](crate) exists: every output is a bijection of the state, so eight
//! bytes tell everything that came before and everything that comes after ([`recover_state`] is
//! the whole attack). Lock rules: none; one `fetch_add` per eight bytes.
//!
//! The recurrence is Steele, Lea and Flood's (*Fast splittable pseudorandom number generators*,
//! OOPSLA 2014) with the constants Vigna published: the state advances by [`GAMMA`], and the
//! output is a finaliser of the new state. Because the state only ever grows by a constant, CPUs
//! that draw at the same time need nothing but an atomic add, and no two of them get the same
//! state.

use core::fmt;

use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// What the state advances by: 2^64 divided by the golden ratio, made odd.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

const MULTIPLIER_1: u64 = 0xbf58_476d_1ce4_e5b9;
const MULTIPLIER_2: u64 = 0x94d0_49bb_1331_11eb;

/// Advances `state` once: returns the new state and the output that belongs to it.
///
/// ```
/// use alea_random::splitmix64::step;
/// let (state, first) = step(0);
/// let (_, second) = step(state);
/// assert_eq!((first, second), (0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4));
/// ```
#[inline]
pub const fn step(state: u64) -> (u64, u64) {
    let next = state.wrapping_add(GAMMA);
    (next, mix(next))
}

/// The finaliser: a bijection on 64-bit words in which every input bit reaches every output bit.
#[inline]
pub const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(MULTIPLIER_1);
    let z = (z ^ (z >> 27)).wrapping_mul(MULTIPLIER_2);
    z ^ (z >> 31)
}

/// The state that produced `output`: why SplitMix64 is no secret-keeper.
///
/// ```
/// use alea_random::splitmix64::{recover_state, step};
/// let (state, seen) = step(0xdead_beef);
/// let (_, next) = step(state);
/// assert_eq!(step(recover_state(seen)).1, next, "one output foretells the next");
/// ```
pub const fn recover_state(output: u64) -> u64 {
    let z = unshift(output, 31).wrapping_mul(inverse(MULTIPLIER_2));
    let z = unshift(z, 27).wrapping_mul(inverse(MULTIPLIER_1));
    unshift(z, 30)
}

/// SplitMix64 with a single owner.
#[derive(Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose first output is that of `step(seed)`. Every seed is as good as another.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next eight bytes.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let (state, output) = step(self.state);
        self.state = state;
        output
    }

    /// Fills `out`; the words are little-endian, the last one cut short.
    #[inline]
    pub fn fill(&mut self, out: &mut [u8]) {
        fill_words(out, || self.next_u64());
    }
}

/// SplitMix64 that any number of CPUs share, and that is seeded exactly once.
///
/// There is no way to draw from it before it is seeded: only [`seed`](Self::seed) and
/// [`get`](Self::get) hand out a [`Seeded`], and only `Seeded` has a draw.
pub struct AtomicSplitMix64 {
    phase: AtomicU8,
    state: AtomicU64,
}

const UNSEEDED: u8 = 0;
const SEEDING: u8 = 1;
const SEEDED: u8 = 2;

impl AtomicSplitMix64 {
    /// A generator that nobody can draw from yet.
    #[cfg(not(alea_loom))]
    pub const fn unseeded() -> Self {
        Self { phase: AtomicU8::new(UNSEEDED), state: AtomicU64::new(0) }
    }

    /// A generator that nobody can draw from yet (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub fn unseeded() -> Self {
        Self { phase: AtomicU8::new(UNSEEDED), state: AtomicU64::new(0) }
    }

    /// Seeds the generator, unless somebody else did or is about to.
    ///
    /// Of several CPUs that race here exactly one wins. The losers must not store their seed: a
    /// state that is set back makes the stream repeat.
    pub fn seed(&self, seed: u64) -> Result<Seeded<'_>, AlreadySeeded> {
        // Relaxed on both sides: winning the exchange publishes nothing, it only keeps others out.
        self.phase
            .compare_exchange(UNSEEDED, SEEDING, Ordering::Relaxed, Ordering::Relaxed)
            .map_err(|_| AlreadySeeded)?;
        // Relaxed: the Release below publishes this store.
        self.state.store(seed, Ordering::Relaxed);
        // Release: pairs with the Acquire in `get`, so that whoever sees SEEDED sees the seed.
        self.phase.store(SEEDED, Ordering::Release);
        Ok(Seeded { state: &self.state })
    }

    /// The right to draw, once the seed is in place.
    #[inline]
    pub fn get(&self) -> Option<Seeded<'_>> {
        // Acquire: pairs with the Release in `seed`.
        (self.phase.load(Ordering::Acquire) == SEEDED).then_some(Seeded { state: &self.state })
    }
}

#[cfg(not(alea_loom))]
impl Default for AtomicSplitMix64 {
    fn default() -> Self {
        Self::unseeded()
    }
}

impl fmt::Debug for AtomicSplitMix64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state is left out: it is the generator's whole future.
        f.debug_struct("AtomicSplitMix64").field("seeded", &self.get().is_some()).finish()
    }
}

impl fmt::Debug for SplitMix64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitMix64").finish_non_exhaustive()
    }
}

/// Proof that a generator is seeded, and the only thing that draws from it.
#[derive(Clone, Copy)]
pub struct Seeded<'a> {
    state: &'a AtomicU64,
}

impl Seeded<'_> {
    /// The next eight bytes.
    #[inline]
    pub fn next_u64(self) -> u64 {
        // Relaxed: the read-modify-write alone gives every caller a state of its own, and no other
        // memory depends on it.
        step(self.state.fetch_add(GAMMA, Ordering::Relaxed)).1
    }

    /// Fills `out` with one atomic add per eight bytes; the last word is cut short.
    #[inline]
    pub fn fill(self, out: &mut [u8]) {
        fill_words(out, || self.next_u64());
    }
}

/// The generator had a seed already, or is being given one by somebody else at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadySeeded;

impl fmt::Display for AlreadySeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the generator is seeded already")
    }
}

impl core::error::Error for AlreadySeeded {}

fn fill_words(out: &mut [u8], mut next: impl FnMut() -> u64) {
    let (words, rest) = out.as_chunks_mut::<8>();
    for word in words {
        *word = next().to_le_bytes();
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&next().to_le_bytes()[..rest.len()]);
    }
}

/// Undoes `z ^ (z >> shift)`.
const fn unshift(value: u64, shift: u32) -> u64 {
    let mut z = value;
    let mut known = shift;
    while known < u64::BITS {
        z = value ^ (z >> shift);
        known += shift;
    }
    z
}

/// The inverse of an odd number modulo 2^64; each round doubles the number of right bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}
