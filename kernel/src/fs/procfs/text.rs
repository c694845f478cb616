//! Open files whose contents are a text made on demand.
//!
//! Owns the text of one open file, made at its beginning. Never made under a spinlock, since it may need memory. Locks:
//! a sleeping one for the text, held over the user copy.
#![forbid(unsafe_code)]

use crate::mm::fallible::{TryString, TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::{Mutex, Pace};
use crate::vfs::{FileOps, OpenFile, Whence};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Write as _;

/// Largest single write that reaches a file.
const WRITE_LIMIT: usize = 64 * 1024;

/// Bytes of a text that are copied in one piece.
const PIECE: usize = 32 * 1024;

/// Where a text comes from.
pub trait TextSource: Send + Sync {
    /// Makes it.
    fn text(&self) -> Result<Vec<u8>>;
    /// Takes a write.
    fn take(&self, data: &[u8]) -> Result<usize>;
    /// A number for what the text is about. An open file reads as empty once the number is another.
    fn subject(&self) -> u64 {
        0
    }
    /// Whether it takes a value, written at the beginning, and stands there still afterwards.
    fn is_value(&self) -> bool {
        false
    }
    /// Reads in place of a text (a process's memory).
    fn read_at(&self, _dst: &mut Sink<'_>, _pos: u64) -> Option<Result<usize>> {
        None
    }
}

/// A text whose length users choose (one line a mapping): out of memory is `ENOMEM`, never a panic.
#[derive(Default)]
pub struct TextBuf {
    bytes: Vec<u8>,
    failed: bool,
}

impl TextBuf {
    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The whole text; `ENOMEM` if a part did not fit.
    pub fn finish(self) -> Result<Vec<u8>> {
        if self.failed { Err(Errno::ENOMEM) } else { Ok(self.bytes) }
    }
}

impl core::fmt::Write for TextBuf {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.failed |= self.bytes.try_extend_from_slice(text.as_bytes()).is_err();
        if self.failed { Err(core::fmt::Error) } else { Ok(()) }
    }
}

impl TryString for TextBuf {
    fn try_push_str(&mut self, text: &str) -> Result<()> {
        self.write_str(text).map_err(|_| Errno::ENOMEM)
    }

    fn try_push_char(&mut self, one: char) -> Result<()> {
        self.try_push_str(one.encode_utf8(&mut [0; 4]))
    }

    #[expect(clippy::disallowed_methods, reason = "this writer is fallible")]
    fn try_append(&mut self, text: core::fmt::Arguments<'_>) -> Result<()> {
        self.write_fmt(text).map_err(|_| Errno::ENOMEM)
    }
}

/// An open text.
pub struct TextOps {
    source: Arc<dyn TextSource>,
    /// The source's subject when it was opened.
    subject: u64,
    /// Made by the first read, and again by each read from the start.
    text: Mutex<Option<Vec<u8>>>,
}

impl TextOps {
    /// Nothing is made yet.
    pub fn new(source: Arc<dyn TextSource>) -> Result<Arc<Self>> {
        let subject = source.subject();
        try_arc(Self { source, subject, text: Mutex::new(None) })
    }
}

impl FileOps for TextOps {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, pos: &mut u64) -> Result<usize> {
        if self.source.subject() != self.subject {
            return Ok(0);
        }
        if let Some(result) = self.source.read_at(dst, *pos) {
            let done = result?;
            *pos = pos.saturating_add(done as u64);
            return Ok(done);
        }
        let mut text = self.text.lock();
        if *pos == 0 || text.is_none() {
            *text = Some(self.source.text()?);
        }
        let rest = usize::try_from(*pos).ok().and_then(|pos| text.as_deref()?.get(pos..));
        let mut done = 0;
        for piece in rest.unwrap_or_default().chunks(PIECE).paced() {
            match dst.put(piece) {
                Ok(put) => done += put,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            if dst.remaining() == 0 {
                break;
            }
        }
        *pos = pos.saturating_add(done as u64);
        Ok(done)
    }

    fn write(&self, _: &OpenFile, src: &mut Source<'_>, pos: &mut u64) -> Result<usize> {
        if self.source.subject() != self.subject {
            return Ok(0);
        }
        let is_value = self.source.is_value();
        if is_value && *pos != 0 {
            return Err(Errno::EINVAL);
        }
        let len = src.remaining().min(WRITE_LIMIT);
        let mut data = Vec::new();
        data.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        data.try_resize(len, 0)?;
        let got = src.take(&mut data)?;
        let done = self.source.take(&data[..got])?;
        if !is_value {
            *pos = pos.saturating_add(done as u64);
        }
        Ok(done)
    }

    fn lseek(&self, _: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        match whence {
            Whence::Set | Whence::Cur => whence.resolve(pos, 0, offset),
            _ => Err(Errno::EINVAL),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
