//! A TPM 2.0's random bytes: the one command, and what its answer may say.
//!
//! Owns the bytes of the command, the reading of the answer, which may claim anything, and the bytes that wait until there
//! are enough of them. Never keeps an answer. Lock rules: none.
//!
//! Reference: TCG, *TPM 2.0 Library*, part 3, section 16.1 (`TPM2_GetRandom`) and 9.3 (`TPM2_Startup`); part 2, section 6
//! (tags, command and response codes). All numbers are big-endian.

use core::fmt;

use crate::block::wipe::wipe;
use crate::device::PIECE;

/// How many bytes one command asks for: as many as every TPM gives at once (its shortest digest that is in use).
pub const REQUEST: usize = 32;

/// `TPM2_GetRandom` of [`REQUEST`] bytes, without a session.
pub const GET_RANDOM: [u8; 12] = [0x80, 0x01, 0, 0, 0, 12, 0, 0, 0x01, 0x7b, 0, REQUEST as u8];

/// `TPM2_Startup(CLEAR)`, for a TPM that no firmware has started.
pub const STARTUP: [u8; 12] = [0x80, 0x01, 0, 0, 0, 12, 0, 0, 0x01, 0x44, 0, 0];

/// The longest answer to either.
pub const LONGEST_ANSWER: usize = HEADER + 2 + REQUEST;

const HEADER: usize = 10;
const NO_SESSIONS: u16 = 0x8001;
const SUCCESS: u32 = 0;
const NOT_STARTED: u32 = 0x100;

/// Why an answer brings no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpmFault {
    /// The answer ends before its header does, or before what its lengths promise.
    Truncated,
    /// Its lengths contradict each other, or it brings more than was asked for.
    Lengths,
    /// It is no answer of a TPM 2.0.
    Tag(u16),
    /// The TPM wants [`STARTUP`] first.
    NotStarted,
    /// The TPM refuses, with this response code.
    Refused(u32),
}

impl fmt::Display for TpmFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("its answer is cut off"),
            Self::Lengths => f.write_str("its answer's lengths cannot be true"),
            Self::Tag(tag) => write!(f, "its answer has the tag {tag:#06x}"),
            Self::NotStarted => f.write_str("it was not started"),
            Self::Refused(code) => write!(f, "it refuses with code {code:#x}"),
        }
    }
}

impl core::error::Error for TpmFault {}

/// A TPM as its interface shows it: one command at a time.
pub trait Interface {
    /// The interface is not kept to.
    type Broken;

    /// Sends a command.
    fn send(&mut self, command: &[u8]) -> Result<(), Self::Broken>;

    /// Takes the answer into `out`, as much as fits, and leaves none of it in the device; how many bytes that are, or nothing
    /// if the TPM is still at work.
    fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Self::Broken>>;
}

/// Why a TPM is not asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<B> {
    /// It does not keep to its interface.
    Interface(B),
    /// It gave an answer that brings no bytes.
    Answer(TpmFault),
}

/// Asks a TPM for random bytes again and again, until there are enough for [`DeviceTests`](crate::device::DeviceTests).
pub struct Collector<I> {
    tpm: I,
    start: Start,
    /// What was answered and not handed on yet.
    bytes: [u8; PIECE],
    len: usize,
}

/// Firmware starts the TPM; where it has not, that is tried once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    NotTried,
    Sent,
    Tried,
}

impl<I: Interface> Collector<I> {
    /// Sends the first command.
    pub fn begin(mut tpm: I) -> Result<Self, I::Broken> {
        tpm.send(&GET_RANDOM)?;
        Ok(Self { tpm, start: Start::NotTried, bytes: [0; PIECE], len: 0 })
    }

    /// Takes an answer, if there is one, and sends the next command; whether there were bytes enough to fill `out`. Never
    /// waits. After an error it is not to be asked again.
    pub fn look(&mut self, out: &mut [u8; PIECE]) -> Result<bool, Fault<I::Broken>> {
        let mut answer = [0; LONGEST_ANSWER];
        let Some(count) = self.tpm.answer(&mut answer) else { return Ok(false) };
        let next = count.map_err(Fault::Interface).and_then(|count| self.judge(&answer[..count]));
        wipe(&mut answer);
        self.tpm.send(next?).map_err(Fault::Interface)?;
        let is_full = self.len == self.bytes.len();
        if is_full {
            *out = self.bytes;
            wipe(&mut self.bytes);
            self.len = 0;
        }
        Ok(is_full)
    }

    /// Keeps what an answer brings; the next command.
    fn judge<B>(&mut self, answer: &[u8]) -> Result<&'static [u8], Fault<B>> {
        if self.start == Start::Sent {
            // The next answer tells whether it helped.
            self.start = Start::Tried;
            return Ok(&GET_RANDOM);
        }
        match random_bytes(answer) {
            Ok(bytes) => {
                let room = &mut self.bytes[self.len..];
                let len = bytes.len().min(room.len());
                room[..len].copy_from_slice(&bytes[..len]);
                self.len += len;
                Ok(&GET_RANDOM)
            }
            Err(TpmFault::NotStarted) if self.start == Start::NotTried => {
                self.start = Start::Sent;
                Ok(&STARTUP)
            }
            Err(fault) => Err(Fault::Answer(fault)),
        }
    }
}

impl<I> fmt::Debug for Collector<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The random bytes of the answer at the start of `buffer`, of which there may be fewer than [`REQUEST`]; what follows the
/// answer is not looked at.
///
/// ```
/// use alea_random::tpm::{TpmFault, random_bytes};
/// let answer = [0x80, 0x01, 0, 0, 0, 15, 0, 0, 0, 0, 0, 3, 7, 8, 9];
/// assert_eq!(random_bytes(&answer), Ok(&[7, 8, 9][..]));
/// assert_eq!(random_bytes(&answer[..14]), Err(TpmFault::Truncated));
/// ```
pub fn random_bytes(buffer: &[u8]) -> Result<&[u8], TpmFault> {
    let body = body(buffer)?;
    let (count, bytes) = body.split_first_chunk().ok_or(TpmFault::Lengths)?;
    let count = usize::from(u16::from_be_bytes(*count));
    if count != bytes.len() || count > REQUEST {
        return Err(TpmFault::Lengths);
    }
    Ok(bytes)
}

/// What follows the header of a successful answer, to the length that the header gives.
fn body(buffer: &[u8]) -> Result<&[u8], TpmFault> {
    let (header, _) = buffer.split_first_chunk::<HEADER>().ok_or(TpmFault::Truncated)?;
    let [t0, t1, s0, s1, s2, s3, c0, c1, c2, c3] = *header;
    let tag = u16::from_be_bytes([t0, t1]);
    if tag != NO_SESSIONS {
        return Err(TpmFault::Tag(tag));
    }
    match u32::from_be_bytes([c0, c1, c2, c3]) {
        SUCCESS => {}
        NOT_STARTED => return Err(TpmFault::NotStarted),
        code => return Err(TpmFault::Refused(code)),
    }
    // A length that does not fit is longer than any buffer.
    let size = usize::try_from(u32::from_be_bytes([s0, s1, s2, s3])).unwrap_or(usize::MAX);
    if size < HEADER {
        return Err(TpmFault::Lengths);
    }
    buffer.get(HEADER..size).ok_or(TpmFault::Truncated)
}
