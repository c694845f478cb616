//! What an open file may be used for: [`FileMode`], Linux's `fmode_t`.
//!
//! Found once, when the file is opened, so that each transfer tests one byte: access and `O_PATH` cannot change later,
//! and what a position means depends only on the kind of file.
#![forbid(unsafe_code)]

use abi::fs::OpenFlags;
use bitflags::bitflags;

/// What the position of a file means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A transfer starts at it and moves it, so transfers through one description wait for each other.
    Used,
    /// `lseek` is allowed, but no transfer looks at it, as on many devices.
    Ignored,
    /// There is none: `pread` gives ESPIPE.
    None,
}

bitflags! {
    /// What an open file may be used for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FileMode: u8 {
        const READ = 1;
        const WRITE = 2;
        /// It only names a place (`O_PATH`).
        const PATH = 4;
        /// `lseek`, `pread` and `pwrite` are allowed.
        const SEEK = 8;
        /// Transfers depend on the position.
        const POSITION = 16;
    }
}

impl FileMode {
    /// Of a file that is opened with `flags`.
    #[inline]
    pub fn new(flags: OpenFlags, position: Position) -> Self {
        let mut access = Self::empty();
        access.set(Self::PATH, flags.contains(OpenFlags::PATH));
        access.set(Self::READ, flags.readable() && !access.contains(Self::PATH));
        access.set(Self::WRITE, flags.writable() && !access.contains(Self::PATH));
        access.union(match position {
            Position::Used => Self::SEEK.union(Self::POSITION),
            Position::Ignored => Self::SEEK,
            Position::None => Self::empty(),
        })
    }
}
