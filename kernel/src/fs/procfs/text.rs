//! Open files whose contents are a text made on demand.
//!
//! Owns the text of one open file, or the piece of it that was read last. A text is made when the file is read from its
//! beginning; one whose length users choose is made a piece at a time. Never made under a spinlock, since it may need
//! memory. Locks: a sleeping one for the text, held over the user copy.
#![forbid(unsafe_code)]

use super::row::Row;
use crate::mm::fallible::{TryString, TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::{Mutex, Pace, PollTable, killable};
use crate::vfs::object::mount::Changes;
use crate::vfs::{FileOps, OpenFile, PollEvents, Whence};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering};

/// Largest single write that reaches a file.
const WRITE_LIMIT: usize = 64 * 1024;

/// Bytes of a text that are copied in one piece.
const PIECE: usize = 32 * 1024;

/// Where a text comes from.
pub trait TextSource: Send + Sync {
    /// Makes it.
    fn text(&self) -> Result<Vec<u8>>;
    /// Adds a piece of it to `text`, which is empty, from the place `from` on (0 is the beginning), and returns where the
    /// next piece begins. A text that is not long is one piece.
    fn piece(&self, _from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
        text.replace(self.text()?);
        Ok(None)
    }
    /// Takes a write.
    fn take(&self, data: &[u8]) -> Result<usize>;
    /// Takes a write at `pos`.
    fn take_at(&self, data: &[u8], _pos: u64) -> Result<usize> {
        self.take(data)
    }
    /// Whether it is below /proc/sys, where files have an end to seek from: their beginning.
    fn is_sysctl(&self) -> bool {
        false
    }
    /// Whether nothing is read but from the beginning.
    fn is_read_at_once(&self) -> bool {
        false
    }
    /// A number for what the text is about. An open file reads as empty once this number has changed.
    fn subject(&self) -> u64 {
        0
    }
    /// Whether it takes one value, which is written at position 0 and does not move the position.
    fn is_value(&self) -> bool {
        false
    }
    /// Whether it can be waited for, and not only be found ready.
    fn is_watchable(&self) -> bool {
        self.changes().is_some()
    }
    /// What tells of changes of the text.
    fn changes(&self) -> Option<&'static Changes> {
        None
    }
    /// Reads in place of a text (a process's memory); the subject is that which it had when it was opened.
    fn read_at(&self, _dst: &mut Sink<'_>, _pos: u64, _subject: u64) -> Option<Result<usize>> {
        None
    }
    /// Writes in place of taking a text, as [`read_at`](Self::read_at) reads.
    fn write_at(&self, _src: &mut Source<'_>, _pos: u64, _subject: u64) -> Option<Result<usize>> {
        None
    }
}

/// A text whose length users choose (one line a mapping): out of memory is `ENOMEM`, never a panic.
#[derive(Default)]
pub struct TextBuf {
    bytes: Vec<u8>,
    failed: bool,
    /// What a source that makes pieces counts from each to the next, such as lines: 0 at the beginning.
    pub number: u64,
}

impl TextBuf {
    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Puts `bytes` in place of what is there.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        *self = Self { bytes, ..Self::default() };
    }

    /// Forgets what is there; its memory stays.
    fn clear(&mut self) {
        self.bytes.clear();
        self.failed = false;
    }

    /// Adds a row.
    pub fn put<const N: usize>(&mut self, row: &Row<N>) -> Result<()> {
        let put = self.bytes.try_extend_from_slice(row.bytes());
        self.failed |= put.is_err();
        put.map_err(|_| Errno::ENOMEM)
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
    /// How many changes a poll has told of, and those before it was opened.
    told: AtomicU64,
    /// Made by the first read, and again by each read from the start or from before the piece at hand.
    text: Mutex<Option<Shown>>,
}

/// The part of a text that is at hand.
#[derive(Default)]
struct Shown {
    text: TextBuf,
    /// Which byte of the whole text it begins with.
    start: u64,
    /// Where the source goes on behind it.
    next: Option<u64>,
    /// What it is about.
    subject: u64,
}

impl Shown {
    fn make(&mut self, source: &dyn TextSource, from: u64) -> Result<()> {
        self.text.clear();
        if from == 0 {
            self.text.number = 0;
        }
        self.next = source.piece(from, &mut self.text)?;
        if source.subject() != self.subject {
            // It has changed meanwhile: of the new one nothing is shown, which is perhaps not the reader's to see.
            self.text.clear();
            self.next = None;
        }
        if self.text.failed { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// What is at hand from byte `pos` of the whole text on; `pos` is not before the piece at hand.
    fn rest(&self, pos: u64) -> &[u8] {
        let at = usize::try_from(pos.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.text.bytes.get(at..).unwrap_or_default()
    }

    /// Copies what follows byte `pos`, as much as is at hand or fits; nothing at the end.
    fn copy(&mut self, source: &dyn TextSource, dst: &mut Sink<'_>, pos: u64) -> Result<usize> {
        if !self.reach(source, pos)? {
            return Ok(0);
        }
        let mut done = 0;
        for piece in self.rest(pos).chunks(PIECE).paced() {
            match dst.put(piece) {
                Ok(put) => done += put,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            if dst.remaining() == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// Makes pieces until one has byte `pos`; false if the text ends before it.
    fn reach(&mut self, source: &dyn TextSource, pos: u64) -> Result<bool> {
        while self.rest(pos).is_empty() {
            let Some(from) = self.next else { return Ok(false) };
            killable()?;
            let start = self.start.saturating_add(self.text.len() as u64);
            self.make(source, from)?;
            self.start = start;
        }
        Ok(true)
    }
}

impl TextOps {
    /// Nothing is made yet.
    pub fn new(source: Arc<dyn TextSource>) -> Result<Arc<Self>> {
        let subject = source.subject();
        let told = AtomicU64::new(source.changes().map_or(0, Changes::count));
        try_arc(Self { source, subject, told, text: Mutex::new(None) })
    }
}

impl FileOps for TextOps {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, pos: &mut u64) -> Result<usize> {
        if let Some(result) = self.source.read_at(dst, *pos, self.subject) {
            let done = result?;
            *pos = pos.saturating_add(done as u64);
            return Ok(done);
        }
        if self.source.subject() != self.subject {
            return Ok(0);
        }
        if *pos != 0 && self.source.is_read_at_once() {
            return Ok(0);
        }
        let mut text = self.text.lock();
        let source = &*self.source;
        if *pos == 0 || text.as_ref().is_none_or(|shown| *pos < shown.start) {
            let mut shown = text.take().unwrap_or_default();
            (shown.start, shown.subject) = (0, self.subject);
            shown.make(source, 0)?;
            *text = Some(shown);
        }
        let Some(shown) = text.as_mut() else { return Ok(0) };
        let mut done = 0;
        while dst.remaining() > 0 {
            match shown.copy(source, dst, pos.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(put) => done += put,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        *pos = pos.saturating_add(done as u64);
        Ok(done)
    }

    fn write(&self, _: &OpenFile, src: &mut Source<'_>, pos: &mut u64) -> Result<usize> {
        if let Some(result) = self.source.write_at(src, *pos, self.subject) {
            let done = result?;
            *pos = pos.saturating_add(done as u64);
            return Ok(done);
        }
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
        let done = self.source.take_at(&data[..got], *pos)?;
        if !is_value {
            *pos = pos.saturating_add(done as u64);
        }
        Ok(done)
    }

    /// As on Linux, a file that tells of changes cannot be waited for to be written.
    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        let Some(changes) = self.source.changes() else { return PollEvents::ALWAYS };
        changes.watch(table);
        let count = changes.count();
        // Relaxed: of one change, one poll tells.
        match self.told.swap(count, Ordering::Relaxed) == count {
            true => PollEvents::READABLE,
            false => PollEvents::READABLE | PollEvents::ERR | PollEvents::PRI,
        }
    }

    fn is_watchable(&self, _: &OpenFile) -> bool {
        self.source.is_watchable()
    }

    fn lseek(&self, _: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        match whence {
            Whence::End if self.source.is_sysctl() => whence.resolve(pos, 0, offset),
            Whence::Set | Whence::Cur => whence.resolve(pos, 0, offset),
            _ => Err(Errno::EINVAL),
        }
    }
}
