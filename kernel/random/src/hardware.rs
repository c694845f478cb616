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
//!   beside the last eight, which finds a part that plays the same ones at each test, and cycles of up to fourteen;
//! - a part of whose words some bits stand still passes these, too: every byte of every word that is used goes through
//!   the standard's tests ([`WordTests`]), at start, always and on demand.

use core::fmt;

use crate::block::wipe::wipe;
use crate::credit::EntropyBits;
use crate::health::{Cutoffs, HealthFault, StandardTests};

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
    /// The bytes of its words fail a test of SP 800-90B.
    Biased(HealthFault),
}

impl fmt::Display for HardwareFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoData => "the hardware generator delivers nothing",
            Self::Implausible => "the hardware generator delivers zeros or all-ones",
            Self::Stuck => "the hardware generator repeats itself",
            Self::Biased(_) => "the bytes of the hardware generator are not evenly spread",
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

    /// Wipes the words that it keeps.
    pub(crate) fn forget(&mut self) {
        wipe(&mut self.last);
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

/// Places of a word's bytes, in the order in which windows of the proportion test begin with them: parts that deliver only
/// half of a word, or every other 16 bits, are found in the first two windows, which are the start-up.
const PLACES: [u32; 8] = [7, 0, 5, 2, 6, 1, 4, 3];

/// The tests that every word of a source goes through, used or not: [`StandardTests`] over its bytes, and [`SelfTest`]
/// over words that are drawn for that alone.
///
/// **The symbol** is a byte. The sources claim 64 bits a word, or to look as if they had them, so eight a byte
/// ([`Cutoffs::EIGHT_BITS`]: five equal ones in a row, sixteen in a window of 512). Whole words would show nothing but
/// repetitions, of which `SelfTest` knows more; and tests over words have to keep words, which are made into keys. These
/// keep two bytes.
///
/// ```
/// use alea_random::hardware::{HardwareFault, WordTests};
/// let mut tests = WordTests::new();
/// let verdict = (1..100u64).try_for_each(|n| tests.observe(n * 0x9e37_79b9 & 0xffff_ffff));
/// assert!(matches!(verdict, Err(HardwareFault::Biased(_))), "its upper halves are zero");
/// ```
pub struct WordTests {
    bytes: StandardTests,
    words: u32,
    replay: SelfTest,
}

impl WordTests {
    /// A tester that has seen nothing.
    pub const fn new() -> Self {
        Self { bytes: StandardTests::new(Cutoffs::EIGHT_BITS), words: 0, replay: SelfTest::new() }
    }

    /// Takes a word into account, used or not. False alarm: see [`crate::health`], less than 2^-28 for 64 words.
    pub fn observe(&mut self, word: u64) -> Result<(), HardwareFault> {
        const WINDOW_WORDS: u32 = crate::health::WINDOW / 8;
        let place = PLACES[(self.words / WINDOW_WORDS % 8) as usize];
        self.words = self.words.wrapping_add(1);
        let bytes = word.rotate_right(8 * place).to_le_bytes();
        bytes
            .into_iter()
            .try_for_each(|byte| self.bytes.observe(u64::from(byte)))
            .map_err(HardwareFault::Biased)
    }

    /// Judges eight words that are used for nothing else: [`SelfTest`], and whether some byte is the same in all of them,
    /// which the proportion test takes up to four windows to find. False alarm of that: 8 / 256^7, 2^-53.
    pub fn judge(&mut self, words: &[u64; SELF_TEST_SAMPLES]) -> Result<(), HardwareFault> {
        self.replay.judge(words)?;
        let varies = words.iter().fold(0, |varies, word| varies | (word ^ words[0]));
        if varies.to_le_bytes().contains(&0) {
            return Err(HardwareFault::Stuck);
        }
        words.iter().try_for_each(|word| self.observe(*word))
    }

    /// Whether the start-up tests are over: 1,024 bytes, before which nothing may be credited.
    pub const fn started(&self) -> bool {
        self.bytes.started()
    }
}

impl Default for WordTests {
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
