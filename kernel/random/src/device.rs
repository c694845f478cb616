//! When the bytes of a random number device may be believed: virtio-rng and its like.
//!
//! Owns the rules for one answer of a device that may be anybody's: what it claims to have written against
//! what it was given room for, and whether the bytes look like a generator's at all. Bytes that fail are
//! worth mixing in and no credit. Lock rules: none.
//!
//! The rules answer failures that shipped: Linux believed the length in the used ring, and a device that
//! claimed more than the buffer had its driver hand out neighbouring memory (fixed by a clamp in 2025).

use core::fmt;

use crate::hardware::{HardwareFault, HardwareRng, SELF_TEST_SAMPLES, self_test};

/// How many bytes one request asks for: as many words as the self-test looks at.
pub const REQUEST: usize = SELF_TEST_SAMPLES * size_of::<u64>();

/// Why an answer gets no credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// It claims to have written more than there was room for.
    Overlong,
    /// It wrote less than was asked for: allowed, but nothing can be said about so little.
    Short,
    /// The bytes are constant or repeat.
    Content(HardwareFault),
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlong => f.write_str("the device claims more bytes than it was asked for"),
            Self::Short => f.write_str("the device delivers too little to be tested"),
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

/// Whether an answer to a request for [`REQUEST`] bytes is worth credit.
pub fn judge(answer: &[u8; REQUEST], claimed: u32) -> Result<(), DeviceFault> {
    if claimed > REQUEST as u32 {
        return Err(DeviceFault::Overlong);
    }
    if claimed < REQUEST as u32 {
        return Err(DeviceFault::Short);
    }
    let (words, _) = answer.as_chunks();
    self_test(&mut Words(words)).map_err(DeviceFault::Content)
}

/// The words of an answer, as a generator that ends.
struct Words<'a>(&'a [[u8; 8]]);

impl HardwareRng for Words<'_> {
    fn next_u64(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }
}
