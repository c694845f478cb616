//! What Linux's random interfaces accept, refuse and wait for, as pure functions.
//!
//! Owns the meaning of getrandom(2)'s flags and lengths, of the two devices' modes and ioctls, and
//! the loop that serves a request in pieces. It never touches user memory and knows no errno
//! numbers: a kernel turns a [`Refusal`] into its own. Lock rules: none.
//!
//! Order matters, programs can see it: for getrandom(2) it is flags ([`GetrandomFlags::decode`]),
//! readiness ([`getrandom_admission`], even for length 0), the length ([`clamp_len`]), the address
//! range, and only then data ([`serve`]).

use core::fmt;

pub use self::uuid::uuid_text;
use crate::credit::State;

/// The longest transfer of one system call: the largest multiple of a page in an `int`.
pub const MAX_LEN: usize = 0x7fff_f000;

/// A request is interruptible, and yields the CPU, only after multiples of this many bytes.
pub const PIECE: usize = 4096;

/// Why a request gets no bytes; the names are those of the errno values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `EINVAL`: unknown or contradictory flags, unknown ioctl, negative count.
    InvalidArgument,
    /// `EAGAIN`: it would have to wait and may not.
    WouldBlock,
    /// `EFAULT`: not one byte of the buffer could be reached.
    Fault,
    /// `EPERM`: the caller lacks `CAP_SYS_ADMIN`.
    NotPermitted,
    /// `ENODATA`: a reseed was asked for before there was anything to reseed from.
    NoData,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidArgument => "invalid argument",
            Self::WouldBlock => "not ready, and not allowed to wait",
            Self::Fault => "bad address",
            Self::NotPermitted => "operation not permitted",
            Self::NoData => "not ready to reseed",
        })
    }
}

impl core::error::Error for Refusal {}

/// The flags of getrandom(2), known to be a valid combination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetrandomFlags {
    nonblock: bool,
    insecure: bool,
}

impl GetrandomFlags {
    /// Fail rather than wait.
    pub const NONBLOCK: u32 = 1;
    /// Once chose the blocking pool; changes nothing today.
    pub const RANDOM: u32 = 2;
    /// Bytes at once, even unseeded ones.
    pub const INSECURE: u32 = 4;

    /// Decodes the flags register. `flags` is an `unsigned int`, so the upper half is ignored.
    ///
    /// ```
    /// use alea_random::request::{GetrandomFlags, Refusal};
    /// assert!(GetrandomFlags::decode(0xffff_ffff_0000_0003).is_ok());
    /// assert_eq!(GetrandomFlags::decode(6), Err(Refusal::InvalidArgument), "RANDOM|INSECURE");
    /// assert_eq!(GetrandomFlags::decode(8), Err(Refusal::InvalidArgument));
    /// ```
    #[inline]
    pub const fn decode(register: u64) -> Result<Self, Refusal> {
        let flags = register as u32;
        let known = Self::NONBLOCK | Self::RANDOM | Self::INSECURE;
        let contradictory = Self::RANDOM | Self::INSECURE;
        if flags & !known != 0 || flags & contradictory == contradictory {
            return Err(Refusal::InvalidArgument);
        }
        Ok(Self { nonblock: flags & Self::NONBLOCK != 0, insecure: flags & Self::INSECURE != 0 })
    }
}

/// What becomes of a request in the present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Serve it.
    Serve,
    /// Serve it, although the bytes may be predictable: the caller asked for exactly that.
    ServeUnseeded,
    /// Wait for [`State::Ready`]; a signal may interrupt the wait.
    Wait,
}

/// Whether getrandom(2) is served now. Asked before the length is looked at.
#[inline]
pub const fn getrandom_admission(
    state: State,
    flags: GetrandomFlags,
) -> Result<Admission, Refusal> {
    match (state, flags.insecure, flags.nonblock) {
        (State::Ready, _, _) => Ok(Admission::Serve),
        (_, true, _) => Ok(Admission::ServeUnseeded),
        (_, false, true) => Err(Refusal::WouldBlock),
        (_, false, false) => Ok(Admission::Wait),
    }
}

/// The two character devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/random`, 1:8: waits until ready.
    Random,
    /// `/dev/urandom`, 1:9: never waits.
    Urandom,
}

impl Device {
    /// The device's minor number under major 1.
    pub const fn minor(self) -> u32 {
        match self {
            Self::Random => 8,
            Self::Urandom => 9,
        }
    }

    /// Whether a read is served now; `nonblock` is `O_NONBLOCK` or `RWF_NOWAIT`.
    ///
    /// An unseeded read of urandom is served and deserves a warning in the log.
    #[inline]
    pub const fn read_admission(self, state: State, nonblock: bool) -> Result<Admission, Refusal> {
        match (state, self, nonblock) {
            (State::Ready, _, _) => Ok(Admission::Serve),
            (_, Self::Urandom, _) => Ok(Admission::ServeUnseeded),
            (_, Self::Random, true) => Err(Refusal::WouldBlock),
            (_, Self::Random, false) => Ok(Admission::Wait),
        }
    }

    /// What poll(2) reports. The asymmetry is Linux's: random reports one direction at a time,
    /// urandom has no poll operation and so is always ready for both.
    pub const fn poll(self, state: State) -> Readiness {
        match (self, state) {
            (Self::Urandom, _) => Readiness { readable: true, writable: true },
            (Self::Random, State::Ready) => Readiness { readable: true, writable: false },
            (Self::Random, _) => Readiness { readable: false, writable: true },
        }
    }
}

/// Which directions of a device are ready, each with its normal-band event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// `POLLIN | POLLRDNORM`.
    pub readable: bool,
    /// `POLLOUT | POLLWRNORM`.
    pub writable: bool,
}

/// The length that a request is cut to before the address range is checked.
#[inline]
pub const fn clamp_len(len: usize) -> usize {
    if len < MAX_LEN { len } else { MAX_LEN }
}

/// Whether a request that has moved `done` bytes and has `left` to go looks at signals now: as [`serve`] does, for loops
/// that it does not suit.
#[inline]
pub const fn may_interrupt(done: usize, left: usize) -> bool {
    done > 0 && left > 0 && done.is_multiple_of(PIECE)
}

/// Serves a request of `len` bytes in pieces and returns how many were moved.
///
/// `transfer(offset, length)` makes and copies one piece of at most [`PIECE`] bytes and returns how
/// many arrived; fewer than asked for mean a fault. `interrupted` is asked after every whole piece
/// that is not the last (it may also yield the CPU). A partial count beats both `EFAULT` and
/// `EINTR`: bytes that were moved are always reported.
pub fn serve(
    len: usize,
    transfer: impl FnMut(usize, usize) -> usize,
    interrupted: impl FnMut() -> bool,
) -> Result<usize, Refusal> {
    serve_by::<PIECE, MAX_LEN>(len, transfer, interrupted)
}

/// [`serve`] at any size: its tests try everything at a small one.
fn serve_by<const PIECE: usize, const MAX_LEN: usize>(
    len: usize,
    mut transfer: impl FnMut(usize, usize) -> usize,
    mut interrupted: impl FnMut() -> bool,
) -> Result<usize, Refusal> {
    let len = len.min(MAX_LEN);
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(PIECE);
        let moved = transfer(done, piece).min(piece);
        done += moved;
        if moved < piece {
            return if done == 0 { Err(Refusal::Fault) } else { Ok(done) };
        }
        if done < len && interrupted() {
            break;
        }
    }
    Ok(done)
}

/// The ioctls of both devices. Any other number is `EINVAL`, never `ENOTTY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ioctl {
    /// `RNDGETENTCNT`: the credited bits; anybody may ask.
    GetEntropyCount,
    /// `RNDADDTOENTCNT`: credit without data.
    AddToEntropyCount,
    /// `RNDADDENTROPY`: data with credit.
    AddEntropy,
    /// `RNDZAPENTCNT` and `RNDCLEARPOOL`: no effect since the pool no longer drains.
    ClearPool,
    /// `RNDRESEEDCRNG`: reseed now.
    Reseed,
}

impl Ioctl {
    /// Decodes the command and checks the caller's right, in Linux's order: before any pointer.
    #[inline]
    pub const fn decode(command: u32, admin: bool) -> Result<Self, Refusal> {
        let ioctl = match command {
            0x8004_5200 => return Ok(Self::GetEntropyCount),
            0x4004_5201 => Self::AddToEntropyCount,
            0x4008_5203 => Self::AddEntropy,
            0x5204 | 0x5206 => Self::ClearPool,
            0x5207 => Self::Reseed,
            _ => return Err(Refusal::InvalidArgument),
        };
        if admin { Ok(ioctl) } else { Err(Refusal::NotPermitted) }
    }

    /// Whether `RNDRESEEDCRNG` can be obeyed in this state.
    pub const fn reseed_admission(state: State) -> Result<(), Refusal> {
        match state {
            State::Ready => Ok(()),
            State::Empty | State::Early => Err(Refusal::NoData),
        }
    }

    /// The credit that a signed count argument stands for; negative counts are refused.
    pub const fn credit(count: i32) -> Result<crate::credit::EntropyBits, Refusal> {
        if count < 0 {
            Err(Refusal::InvalidArgument)
        } else {
            Ok(crate::credit::EntropyBits(count as u32))
        }
    }
}

mod uuid;

#[cfg(all(test, not(alea_loom)))]
mod tests;
