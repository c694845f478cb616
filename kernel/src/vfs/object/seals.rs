//! [`Seals`]: the changes of a file that are forbidden for good, and the check for them.
//!
//! The bits of a seal are private to this module, so only this module decides by them. It never stores a seal: the file's
//! inode does, under its mutex for writing; the order against mappings that are being made is explained there.
#![forbid(unsafe_code)]

use abi::{Errno, Result};

/// The three execute bits of a mode.
const EXECUTE: u32 = 0o111;

/// `F_SEAL_*`: the changes of a file that are forbidden for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seals(u32);

/// A change that is about to be made to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Write up to byte `end` of a file of `size` bytes.
    Write { size: u64, end: u64 },
    /// Punch a hole.
    Punch,
    /// Allocate room up to byte `end`, whether or not the length will follow.
    Allocate { size: u64, end: u64 },
    /// Set the length.
    Resize { from: u64, to: u64 },
    /// Set the permission bits.
    Mode { from: u32, to: u32 },
    /// Make a shared mapping that can be written to.
    MapWritable,
}

impl Seals {
    /// Nothing is sealed.
    pub const NONE: Self = Self(0);
    /// No seal can be added.
    pub const FINAL: Self = Self(Self::SEAL);
    /// The execute bits stay as they are.
    pub const NO_EXEC: Self = Self(Self::EXEC);

    const SEAL: u32 = 1;
    const SHRINK: u32 = 2;
    const GROW: u32 = 4;
    const WRITE: u32 = 8;
    const FUTURE_WRITE: u32 = 16;
    const EXEC: u32 = 32;
    const ALL: u32 = 63;

    /// From the argument of `F_ADD_SEALS`: EINVAL for unknown bits.
    pub const fn from_raw(raw: u32) -> Result<Self> {
        if raw & !Self::ALL == 0 { Ok(Self(raw)) } else { Err(Errno::EINVAL) }
    }

    /// From what [`raw`](Self::raw) gave.
    pub const fn stored(raw: u32) -> Self {
        Self(raw & Self::ALL)
    }

    /// As `F_GET_SEALS` shows them.
    pub const fn raw(self) -> u32 {
        self.0
    }

    const fn has(self, any: u32) -> bool {
        self.0 & any != 0
    }

    /// These and `more`, for a file of this mode; EPERM if none may be added. As on Linux, sealing the execute bits of an
    /// executable file seals its contents too.
    pub const fn with(self, more: Self, mode: u32) -> Result<Self> {
        if self.has(Self::SEAL) {
            return Err(Errno::EPERM);
        }
        let contents = Self::SHRINK | Self::GROW | Self::WRITE | Self::FUTURE_WRITE;
        let implied = if more.has(Self::EXEC) && mode & EXECUTE != 0 { contents } else { 0 };
        Ok(Self(self.0 | more.0 | implied))
    }

    /// Whether these forbid shared writable mappings that exist already, and `old` did not.
    pub const fn end_writing_since(self, old: Self) -> bool {
        self.has(Self::WRITE) && !old.has(Self::WRITE)
    }

    /// EPERM if a seal forbids the change.
    #[inline]
    pub const fn check(self, change: Change) -> Result<()> {
        let refused = match change {
            Change::Write { size, end } => {
                self.has(Self::WRITE | Self::FUTURE_WRITE) || (end > size && self.has(Self::GROW))
            }
            Change::Punch | Change::MapWritable => self.has(Self::WRITE | Self::FUTURE_WRITE),
            Change::Allocate { size, end } => end > size && self.has(Self::GROW),
            Change::Resize { from, to } => {
                (to < from && self.has(Self::SHRINK)) || (to > from && self.has(Self::GROW))
            }
            Change::Mode { from, to } => (from ^ to) & EXECUTE != 0 && self.has(Self::EXEC),
        };
        if refused { Err(Errno::EPERM) } else { Ok(()) }
    }
}
