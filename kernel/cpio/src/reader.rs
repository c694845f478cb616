//! Reader of `newc` (070701) and `crc` (070702) cpio archives, as Linux's initramfs uses them.
//!
//! Streams from any [`Input`], so that a compressed archive need never be in memory as a whole. Owns nothing
//! but its place in the input. Any input is safe; corrupt input ends with an [`Error`] that says what is
//! wrong and where. Several archives may follow each other, with zero bytes between.
use core::fmt;

use crate::TRAILER;

/// Length of the header of both formats.
pub(crate) const HEADER: usize = 110;
/// Longest name, its NUL included: Linux's `PATH_MAX`.
pub const NAME_LIMIT: usize = 4096;

/// What is wrong with an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No `070701` or `070702` where a header should be.
    Magic,
    /// A header field is no hexadecimal number.
    Digit,
    /// The archive ends inside a header, a name or a body.
    Truncated,
    /// A name is empty, longer than `PATH_MAX`, or does not end in its one NUL.
    Name,
    /// The sum of a `crc` entry's bytes is not what its header says.
    Checksum,
    /// The archive ends without a trailer.
    NoTrailer,
    /// The compressed data around the archive are corrupt.
    Input,
}

/// A problem and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    pub problem: Problem,
    /// Where the entry that has it starts in the (uncompressed) archive.
    pub offset: u64,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.problem {
            Problem::Magic => "no cpio header (070701 or 070702)",
            Problem::Digit => "a header field is not hexadecimal",
            Problem::Truncated => "the archive is cut short",
            Problem::Name => "a bad file name",
            Problem::Checksum => "a checksum does not match",
            Problem::NoTrailer => "the archive has no trailer",
            Problem::Input => "the compressed data are corrupt",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl core::error::Error for Error {}

/// The input is broken (its compression, say).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenInput;

/// Where the bytes come from.
pub trait Input {
    /// The next bytes, at least one unless the input is at its end.
    fn chunk(&mut self) -> Result<&[u8], BrokenInput>;
    /// Moves on by `len` bytes of what [`chunk`](Self::chunk) gave.
    fn consume(&mut self, len: usize);
}

impl Input for &[u8] {
    fn chunk(&mut self) -> Result<&[u8], BrokenInput> {
        Ok(self)
    }
    fn consume(&mut self, len: usize) {
        *self = self.get(len..).unwrap_or_default();
    }
}

/// One entry. `ino` and `dev` together tell which entries are names of one file: its contents come with the
/// last of them, the others are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub ino: u32,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub nlink: u32,
    /// Seconds since 1970.
    pub mtime: u32,
    /// Length of the contents, or of a symbolic link's target.
    pub size: u32,
    /// Major and minor number of the device it came from.
    pub dev: (u32, u32),
    /// What a device node names.
    pub rdev: (u32, u32),
}

/// The reader: [`next`](Self::next) for each entry, then [`data`](Self::data) until it is empty.
#[derive(Debug)]
pub struct Archive<I> {
    input: I,
    at: u64,
    /// Where the current entry starts.
    entry: u64,
    /// Bytes of the current entry's contents not read yet.
    left: u32,
    sum: Option<(u32, u32)>,
    inside: bool,
    failed: bool,
}

impl<I: Input> Archive<I> {
    /// Reads from where `input` stands.
    pub const fn new(input: I) -> Self {
        Self { input, at: 0, entry: 0, left: 0, sum: None, inside: false, failed: false }
    }

    /// The input, standing behind what has been read.
    pub fn into_input(self) -> I {
        self.input
    }

    /// The next entry; its name goes to `name` and its length is returned with it. `None` at the end of
    /// the input, or in front of something that is no cpio archive and follows one that was whole.
    ///
    /// What is left of the entry before is skipped. After an error there is nothing more.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, name: &mut [u8; NAME_LIMIT]) -> Result<Option<(Header, usize)>, Error> {
        if self.failed {
            return Ok(None);
        }
        self.advance(name).map_err(|problem| {
            self.failed = true;
            Error { problem, offset: self.entry }
        })
    }

    /// The next bytes of the current entry's contents; empty at their end.
    pub fn data(&mut self) -> Result<&[u8], Error> {
        let error = |problem| Error { problem, offset: self.entry };
        if self.left == 0 {
            return Ok(&[]);
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let chunk = self.input.chunk().map_err(|_| error(Problem::Input))?;
        if chunk.is_empty() {
            return Err(error(Problem::Truncated));
        }
        Ok(&chunk[..chunk.len().min(left)])
    }

    /// Moves on by `len` bytes of what [`data`](Self::data) gave; fails if that was the last of a `crc`
    /// entry and the sum is wrong.
    pub fn consume(&mut self, len: usize) -> Result<(), Error> {
        let error = |problem| Error { problem, offset: self.entry };
        if let Some((sum, _)) = &mut self.sum {
            let chunk = self.input.chunk().map_err(|_| error(Problem::Input))?;
            let taken = chunk.get(..len).unwrap_or(chunk);
            *sum = taken.iter().fold(*sum, |sum, &b| sum.wrapping_add(u32::from(b)));
        }
        self.input.consume(len);
        self.at += len as u64;
        self.left = self.left.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
        match self.sum {
            Some((actual, wanted)) if self.left == 0 && actual != wanted => {
                self.failed = true;
                Err(error(Problem::Checksum))
            }
            _ => Ok(()),
        }
    }

    fn advance(&mut self, name: &mut [u8; NAME_LIMIT]) -> Result<Option<(Header, usize)>, Problem> {
        loop {
            self.skip(u64::from(self.left))?;
            self.left = 0;
            if self.inside {
                self.skip(self.at.next_multiple_of(4) - self.at)?;
            } else if !self.skip_zeros()? {
                return Ok(None);
            }
            self.entry = self.at;
            let Some(header) = self.header()? else { return Ok(None) };
            let len = self.name(header.1, name)?;
            let header = header.0;
            self.left = header.size;
            if &name[..len] != TRAILER.as_bytes() {
                self.inside = true;
                return Ok(Some((header, len)));
            }
            self.inside = false;
            self.sum = None;
        }
    }

    /// Reads a header, and the length of the name behind it. `None` where no archive follows a whole one.
    fn header(&mut self) -> Result<Option<(Header, usize)>, Problem> {
        let mut raw = [0u8; HEADER];
        let got = self.fill(&mut raw[..6])?;
        if got == 0 && self.inside {
            return Err(Problem::NoTrailer);
        }
        let has_sum = match &raw[..got] {
            b"070701" => false,
            b"070702" => true,
            short if got < 6 && b"07070".starts_with(&short[..got.min(5)]) => {
                return Err(Problem::Truncated);
            }
            _ => return Err(Problem::Magic),
        };
        if self.fill(&mut raw[6..])? < HEADER - 6 {
            return Err(Problem::Truncated);
        }
        let mut fields = [0u32; 13];
        for (field, text) in fields.iter_mut().zip(raw[6..].chunks_exact(8)) {
            *field = hex(text).ok_or(Problem::Digit)?;
        }
        let [ino, mode, uid, gid, nlink, mtime, size, major, minor, rmajor, rminor, name_len, sum] =
            fields;
        let name_len = usize::try_from(name_len).map_err(|_| Problem::Name)?;
        self.sum = (has_sum && mode & 0o170_000 == 0o100_000).then_some((0, sum));
        let (dev, rdev) = ((major, minor), (rmajor, rminor));
        Ok(Some((Header { ino, mode, uid, gid, nlink, mtime, size, dev, rdev }, name_len)))
    }

    /// Reads the name and the padding behind it; its length without the NUL.
    fn name(&mut self, len: usize, name: &mut [u8; NAME_LIMIT]) -> Result<usize, Problem> {
        if !(2..=NAME_LIMIT).contains(&len) {
            return Err(Problem::Name);
        }
        if self.fill(&mut name[..len])? < len {
            return Err(Problem::Truncated);
        }
        if name[..len].iter().position(|&b| b == 0) != Some(len - 1) {
            return Err(Problem::Name);
        }
        self.skip(self.at.next_multiple_of(4) - self.at)?;
        Ok(len - 1)
    }

    /// Reads as much of `buf` as there is.
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, Problem> {
        let mut done = 0;
        while done < buf.len() {
            let chunk = self.input.chunk().map_err(|_| Problem::Input)?;
            let len = chunk.len().min(buf.len() - done);
            if len == 0 {
                break;
            }
            buf[done..done + len].copy_from_slice(&chunk[..len]);
            self.input.consume(len);
            self.at += len as u64;
            done += len;
        }
        Ok(done)
    }

    fn skip(&mut self, mut len: u64) -> Result<(), Problem> {
        while len > 0 {
            let chunk = self.input.chunk().map_err(|_| Problem::Input)?;
            if chunk.is_empty() {
                return Err(Problem::Truncated);
            }
            let step = chunk.len().min(usize::try_from(len).unwrap_or(usize::MAX));
            self.input.consume(step);
            self.at += step as u64;
            len -= step as u64;
        }
        Ok(())
    }

    /// Skips the zero bytes between archives; whether another archive follows.
    fn skip_zeros(&mut self) -> Result<bool, Problem> {
        loop {
            let chunk = self.input.chunk().map_err(|_| Problem::Input)?;
            let zeros = chunk.iter().position(|&b| b != 0).unwrap_or(chunk.len());
            if zeros == 0 {
                // Behind a whole archive, something else may follow; at the very start, it is an error.
                let other = self.at != 0 && chunk.first() != Some(&b'0');
                return Ok(!chunk.is_empty() && !other);
            }
            self.input.consume(zeros);
            self.at += zeros as u64;
        }
    }
}

fn hex(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0u32, |value, &b| {
        let digit = char::from(b).to_digit(16)?;
        Some((value << 4) | digit)
    })
}
