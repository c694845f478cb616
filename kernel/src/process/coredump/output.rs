//! [`Output`]: where a core is written, and how much of it.
//!
//! Owns the position. Never writes what is only zeros into a file that can have holes. Ends with an error when the limit is
//! reached, the file takes no more, or the process is told to die; what is written stays. Locks: the file's.

use crate::base::PAGE_SIZE;
use crate::mm::Source;
use crate::process::task::current::current;
use crate::process::task::limits::Resource;
use crate::sync::killable;
use crate::vfs::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// A core that is being written.
pub(super) struct Output {
    file: Arc<OpenFile>,
    /// RLIMIT_CORE: of bytes that are written. Holes do not count, as on Linux.
    limit: u64,
    written: u64,
    pos: u64,
    /// Zeros that are to come before the next byte.
    hole: u64,
}

impl Output {
    pub fn new(file: Arc<OpenFile>, limit: u64) -> Self {
        Self { file, limit, written: 0, pos: 0, hole: 0 }
    }

    /// Where the next byte goes.
    pub fn pos(&self) -> u64 {
        self.pos.saturating_add(self.hole)
    }

    /// Writes all of `bytes`.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.fill_hole()?;
        self.emit(bytes)
    }

    /// So many zeros come next.
    pub fn skip(&mut self, len: u64) {
        self.hole = self.hole.saturating_add(len);
    }

    /// The core is whole: a file that ends in a hole is made as long as it is to be.
    pub fn finish(mut self) -> Result<()> {
        match self.hole.checked_sub(1) {
            Some(hole) => {
                self.hole = hole;
                self.put(&[0])
            }
            None => Ok(()),
        }
    }

    fn fill_hole(&mut self) -> Result<()> {
        let hole = core::mem::take(&mut self.hole);
        if self.file.seekable() {
            self.pos = self.pos.checked_add(hole).ok_or(Errno::EFBIG)?;
            return killable().map_err(Errno::from);
        }
        static ZEROS: [u8; PAGE_SIZE] = [0; PAGE_SIZE];
        let mut left = hole;
        while left > 0 {
            let now = left.min(PAGE_SIZE as u64);
            self.emit(&ZEROS[..now as usize])?;
            left -= now;
        }
        Ok(())
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if written > self.limit {
            return Err(Errno::EFBIG);
        }
        let room = self.room().min(bytes.len() as u64) as usize;
        let mut source = Source::kernel(&bytes[..room]);
        while source.remaining() > 0 {
            killable()?;
            let put = if self.file.seekable() {
                self.file.write_at(&mut source, self.pos)?
            } else {
                self.file.write(&mut source)?
            };
            if put == 0 {
                return Err(Errno::EIO);
            }
            self.pos += put as u64;
        }
        self.written = written;
        if room < bytes.len() { Err(Errno::EFBIG) } else { Ok(()) }
    }

    /// What RLIMIT_FSIZE leaves.
    fn room(&self) -> u64 {
        if !self.file.seekable() {
            return u64::MAX;
        }
        let limit = current().process().limits().soft(Resource::FileSize);
        limit.saturating_sub(self.pos)
    }
}
