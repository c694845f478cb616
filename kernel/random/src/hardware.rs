//! When a word from a hardware random number generator may be believed.
//!
//! Owns the acceptance rules for RDRAND, RDSEED and their like, as functions over [`HardwareRng`].
//! It never executes an instruction and never credits entropy: a word that passes is plausible,
//! not proven. Lock rules: none.
//!
//! The rules answer failures that shipped:
//! - the carry flag is clear under contention: retry, but a bounded number of times (Intel's
//!   guidance is ten);
//! - some AMD parts answer all-ones with the carry flag set (family 15h/16h after suspend, early
//!   Ryzen 3000 firmware), others zero (Zen 5's narrow RDSEED, CVE-2025-62626): neither word is
//!   ever accepted;
//! - a part that repeats itself passes both: [`self_test`] looks at eight words together, and [`SelfTest`] at eight more
//!   beside the last eight, which finds a part that plays the same ones at each test, and cycles of up to fourteen.

use core::fmt;

use crate::credit::EntropyBits;

/// How often one word is asked for before the source counts as failed.
pub const TRIES: u32 = 10;

/// How many words [`self_test`] looks at.
pub const SELF_TEST_SAMPLES: usize = 8;

/// How many of them have to differ from all earlier ones.
pub const SELF_TEST_DISTINCT: usize = 7;

/// How many words RDRAND has to give before its next one surely stems from another seed: its generator takes a new one
/// after 511 results of 128 bits at the latest (Intel, *Digital Random Number Generator Software Implementation Guide*,
/// "Guaranteeing DRBG reseeding").
pub const RDRAND_RESEED_WORDS: usize = 1022;

/// What all words of RDRAND that stem from one seed are worth together: the generator behind it is AES-128.
pub const RDRAND_SEED_BITS: EntropyBits = EntropyBits(128);

/// A source of 64-bit words that may fail, such as the RDRAND instruction.
pub trait HardwareRng {
    /// One attempt: `None` if the hardware said that it had nothing (the carry flag was clear).
    fn next_u64(&mut self) -> Option<u64>;
}

/// Why a hardware generator is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareFault {
    /// [`TRIES`] attempts in a row delivered nothing.
    NoData,
    /// [`TRIES`] attempts in a row delivered nothing but zeros or all-ones.
    Implausible,
    /// The words of the self-test repeat.
    Stuck,
}

impl fmt::Display for HardwareFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoData => "the hardware generator delivers nothing",
            Self::Implausible => "the hardware generator delivers zeros or all-ones",
            Self::Stuck => "the hardware generator repeats itself",
        })
    }
}

impl core::error::Error for HardwareFault {}

/// One word, after at most [`TRIES`] attempts.
///
/// False alarm: a perfect source is refused if ten words in a row are 0 or 2^64 - 1, which has a
/// probability of 2^-630.
pub fn draw(rng: &mut impl HardwareRng) -> Result<u64, HardwareFault> {
    let mut fault = HardwareFault::NoData;
    for _ in 0..TRIES {
        match rng.next_u64() {
            Some(0 | u64::MAX) => fault = HardwareFault::Implausible,
            Some(word) => return Ok(word),
            None => {}
        }
    }
    Err(fault)
}

/// Draws eight words and refuses a source whose words repeat.
///
/// At least [`SELF_TEST_DISTINCT`] of the eight have to differ from all before them, which catches
/// a constant and every cycle of up to six words. False alarm: a perfect source fails if two of
/// the eight words repeat earlier ones, about (28 / 2^64)^2 / 2, less than 2^-119.
pub fn self_test(rng: &mut impl HardwareRng) -> Result<(), HardwareFault> {
    judge(&test_words(rng)?)
}

/// Words for [`SelfTest::judge`], to be used for nothing else.
pub fn test_words(rng: &mut impl HardwareRng) -> Result<[u64; SELF_TEST_SAMPLES], HardwareFault> {
    let mut words = [0; SELF_TEST_SAMPLES];
    for word in &mut words {
        *word = draw(rng)?;
    }
    Ok(words)
}

fn judge(words: &[u64; SELF_TEST_SAMPLES]) -> Result<(), HardwareFault> {
    let is_new = |&n: &usize| !words[..n].contains(&words[n]);
    let distinct = (0..SELF_TEST_SAMPLES).filter(is_new).count();
    if distinct >= SELF_TEST_DISTINCT { Ok(()) } else { Err(HardwareFault::Stuck) }
}

/// [`self_test`] with a memory: the continuous test of FIPS 140-2 over the words of tests. It keeps words that were used
/// for nothing, so it holds no secret.
///
/// ```
/// use alea_random::hardware::{HardwareFault, SelfTest};
/// let mut test = SelfTest::new();
/// let replayed = [11, 12, 13, 14, 15, 16, 17, 18];
/// assert_eq!(test.judge(&replayed), Ok(()));
/// assert_eq!(test.judge(&replayed), Err(HardwareFault::Stuck));
/// ```
pub struct SelfTest {
    last: [u64; SELF_TEST_SAMPLES],
}

impl SelfTest {
    /// One that has seen nothing.
    pub const fn new() -> Self {
        // Zero is never a word.
        Self { last: [0; SELF_TEST_SAMPLES] }
    }

    /// Judges eight words by themselves and beside the last eight. One coincidence is forgiven each. False alarm: two
    /// coincidences among 64 pairs, about (64 / 2^64)^2 / 2, less than 2^-116, on top of [`self_test`]'s.
    pub fn judge(&mut self, words: &[u64; SELF_TEST_SAMPLES]) -> Result<(), HardwareFault> {
        let again = words.iter().filter(|word| self.last.contains(word)).count();
        self.last = *words;
        judge(words)?;
        if again <= SELF_TEST_SAMPLES - SELF_TEST_DISTINCT {
            Ok(())
        } else {
            Err(HardwareFault::Stuck)
        }
    }
}

impl Default for SelfTest {
    fn default() -> Self {
        Self::new()
    }
}

/// Fills as many words of `out` as the source delivers in a row and returns their number.
///
/// What counts as entropy is the return value, never the length asked for.
pub fn gather(rng: &mut impl HardwareRng, out: &mut [u64]) -> usize {
    for (done, slot) in out.iter_mut().enumerate() {
        match draw(rng) {
            Ok(word) => *slot = word,
            Err(_) => return done,
        }
    }
    out.len()
}
