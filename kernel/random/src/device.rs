//! When the bytes of a random number device may be believed: virtio-rng and its like.
//!
//! Owns the rules for one answer of a device that may be anybody's: what it claims to have written against
//! what it was given room for, and whether the bytes look like a generator's at all. Bytes that fail are
//! worth mixing in and no credit. Lock rules: none.
//!
//! The rules answer failures that shipped: Linux believed the length in the used ring, and a device that
//! claimed more than the buffer had its driver hand out neighbouring memory (fixed by a clamp in 2025).

use core::fmt;

use crate::block::wipe::wipe;
use crate::hardware::{HardwareFault, SELF_TEST_SAMPLES, SelfTest, WordTests};
use crate::health::{Health, STARTUP};
use crate::splitmix64;

/// How many bytes one request asks for: as many as the start-up tests look at, so that one answer may be enough.
pub const REQUEST: usize = STARTUP as usize;

/// How many bytes of a slow device are judged together, one whose every answer takes milliseconds (a TPM): eight words.
pub const PIECE: usize = SELF_TEST_SAMPLES * size_of::<u64>();

/// Why a device gets no credit any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// It claims to have written more than there was room for.
    Overlong,
    /// The bytes are constant, repeat, or are not evenly spread.
    Content(HardwareFault),
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlong => f.write_str("the device claims more bytes than it was asked for"),
            Self::Content(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for DeviceFault {}

/// How many bytes of a buffer of `offered` bytes a device has written that claims `claimed`.
///
/// ```
/// use alea_random::device::written;
/// assert_eq!((written(64, 16), written(64, u32::MAX)), (16, 64));
/// ```
pub const fn written(offered: usize, claimed: u32) -> usize {
    // A u32 always fits where this runs, and a smaller offer wins anyway.
    let claimed = claimed as usize;
    if claimed < offered { claimed } else { offered }
}

/// The tests of one device, over all of its answers. They keep two bytes of what it said, and 32 bits that follow from
/// the last answer.
pub struct DeviceTests {
    words: WordTests,
    last: Option<u32>,
    health: Health,
}

impl DeviceTests {
    /// Of a device that has not answered yet.
    pub const fn new() -> Self {
        Self { words: WordTests::new(), last: None, health: Health::Absent }
    }

    /// The start-up tests from their beginning. A device that has failed has failed for good; any other is
    /// [starting](Health::Starting) until they have passed.
    pub fn test_again(&mut self) -> Health {
        self.words = WordTests::new();
        if self.health != Health::Failed {
            self.health = Health::Starting;
        }
        self.health
    }

    /// Judges an answer to a request for as many bytes as `answer` has room for. [`Health::Healthy`] is worth credit; a
    /// device that answers briefly, which it may, needs more answers for that. One that has failed has failed for good.
    pub fn judge(&mut self, answer: &[u8], claimed: u32) -> Result<Health, DeviceFault> {
        let verdict = self.look(answer, claimed);
        self.health = match verdict {
            _ if self.health == Health::Failed => Health::Failed,
            Err(_) => Health::Failed,
            Ok(()) if self.words.started() => Health::Healthy,
            Ok(()) => Health::Starting,
        };
        verdict.map(|()| self.health)
    }

    fn look(&mut self, answer: &[u8], claimed: u32) -> Result<(), DeviceFault> {
        let len = written(answer.len(), claimed);
        if u32::try_from(len) != Ok(claimed) {
            return Err(DeviceFault::Overlong);
        }
        let (words, _) = answer[..len].as_chunks();
        self.content(words).map_err(DeviceFault::Content)
    }

    /// Cycles and replays: an answer's words eight by eight beside the eight before, and all of it beside the last answer,
    /// of which 32 bits are kept. Then the bytes. False alarm: 2^-32 an answer, on top of those of [`SelfTest`] and
    /// [`WordTests`].
    fn content(&mut self, words: &[[u8; 8]]) -> Result<(), HardwareFault> {
        let implausible = |word: &[u8; 8]| [0, u64::MAX].contains(&u64::from_le_bytes(*word));
        if words.iter().any(implausible) {
            return Err(HardwareFault::Implausible);
        }
        let (groups, _) = words.as_chunks::<SELF_TEST_SAMPLES>();
        let mut cycles = SelfTest::new();
        let verdict = groups.iter().try_for_each(|group| {
            let mut group = group.map(u64::from_le_bytes);
            let verdict = cycles.judge(&group);
            wipe(&mut group);
            verdict
        });
        cycles.forget();
        verdict?;
        let mut digest = 0;
        for word in words {
            let word = u64::from_le_bytes(*word);
            digest = splitmix64::step(digest ^ word).1;
            self.words.observe(word)?;
        }
        if words.is_empty() {
            return Ok(());
        }
        match self.last.replace((digest >> 32) as u32) {
            before if before == self.last => Err(HardwareFault::Stuck),
            _ => Ok(()),
        }
    }
}

impl Default for DeviceTests {
    fn default() -> Self {
        Self::new()
    }
}
