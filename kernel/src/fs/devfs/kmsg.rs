//! /dev/kmsg: the kernel's log, one record for each read; a write adds a line.
//!
//! Each open file has a place of its own in the log, unlike /proc/kmsg, whose readers wait in the same queue.
//!
//! Owns the open files' places. Never holds the log up: a reader that is too slow misses lines (EPIPE).
//! Locks: none of its own.
#![forbid(unsafe_code)]

use super::devfs::register_char;
use crate::diag::klog;
use crate::fs::procfs::is_capable;
use crate::fs::procfs::kmsg::log_readers;
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::PollTable;
use crate::try_format;
use crate::vfs::chardev::CharDriver;
use crate::vfs::{Capability, FileOps, OpenFile, PollEvents, Position, Whence};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Longest line that a write may add: as in older versions of Linux, which takes 1024 bytes by 6.12.
const LINE_LIMIT: usize = 992;

struct Driver;

struct Kmsg {
    /// The record to read next. Relaxed: two readers of one description may see a record twice, as two
    /// concurrent reads may in any order.
    next: AtomicU64,
}

impl CharDriver for Driver {
    fn open(&self, _: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        // An open for writing only is not restricted: it reads nothing.
        if flags.readable() && klog::DMESG_RESTRICT.get() != 0 && !is_capable(Capability::SYSLOG) {
            return Err(Errno::EPERM);
        }
        Ok(try_arc(Kmsg { next: AtomicU64::new(klog::sequences().0) })?)
    }
}

impl Kmsg {
    fn place(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The next record, if there is one; EPIPE if it was overwritten before it was read.
    fn take(&self) -> Option<Result<klog::Line>> {
        let place = self.place();
        let (oldest, end) = klog::sequences();
        if place < oldest {
            self.next.store(oldest, Ordering::Relaxed);
            return Some(Err(Errno::EPIPE));
        }
        if place >= end {
            return None;
        }
        klog::read(place).map(Ok)
    }
}

impl FileOps for Kmsg {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        let line = match self.take() {
            Some(line) => line?,
            None if f.nonblock() => return Err(Errno::EAGAIN),
            None => log_readers().wait_interruptible(|| self.take())??,
        };
        let head = try_format!("{},{},{},-;", line.level, line.sequence, line.time_ns / 1000)?;
        let mut record = head.into_bytes();
        record.try_room(line.text().len() + 1)?;
        for &byte in line.text() {
            // Unprintable bytes are escaped, so that a record is one line.
            if (byte < b' ' && byte != b'\t') || byte >= 0x7f || byte == b'\\' {
                record.try_extend_from_slice(try_format!("\\x{byte:02x}")?.as_bytes())?;
            } else {
                record.try_push(byte)?;
            }
        }
        record.try_push(b'\n')?;
        if dst.remaining() < record.len() {
            return Err(Errno::EINVAL);
        }
        let done = dst.put(&record)?;
        self.next.store(line.sequence + 1, Ordering::Relaxed);
        Ok(done)
    }

    fn write(&self, _: &OpenFile, src: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        let len = src.remaining();
        if len > LINE_LIMIT {
            return Err(Errno::EINVAL);
        }
        let mut line = [0u8; LINE_LIMIT];
        let got = src.take(&mut line[..len])?;
        let (level, text) = split_level(&line[..got]);
        klog::emit(level, format_args!("{}", Lossy(text)));
        Ok(got)
    }

    fn position(&self) -> Position {
        Position::Ignored
    }

    fn lseek(&self, _: &OpenFile, _: u64, offset: i64, whence: Whence) -> Result<u64> {
        if offset != 0 {
            return Err(Errno::ESPIPE);
        }
        let (oldest, end) = klog::sequences();
        let place = match whence {
            Whence::Set | Whence::Data => oldest,
            Whence::End => end,
            _ => return Err(Errno::EINVAL),
        };
        self.next.store(place, Ordering::Relaxed);
        Ok(0)
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(log_readers());
        let (oldest, end) = klog::sequences();
        let place = self.place();
        if place < oldest {
            PollEvents::READABLE | PollEvents::ERR | PollEvents::PRI
        } else if place < end {
            PollEvents::READABLE
        } else {
            PollEvents::empty()
        }
    }
}

/// Splits a `<level>` prefix off; without one the level is `kernel.printk`'s second number, and user space's lines
/// carry facility 1 (user).
fn split_level(line: &[u8]) -> (u8, &[u8]) {
    const FACILITY_USER: u8 = 1 << 3;
    let prefixed = || {
        let rest = line.strip_prefix(b"<")?;
        let end = rest.iter().position(|&b| b == b'>')?;
        let level: u8 = core::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        Some((level, &rest[end + 1..]))
    };
    let (level, text) = prefixed().unwrap_or_else(|| (klog::message_level(), line));
    (if level < 8 { level | FACILITY_USER } else { level }, text)
}

/// Bytes as text; what is not UTF-8 is replaced.
struct Lossy<'a>(&'a [u8]);

impl core::fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            if chunk.invalid().is_empty() { Ok(()) } else { f.write_str("\u{fffd}") }
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "boot: before any user")]
pub(super) fn register() {
    register_char(1, 11, "kmsg", 0o644, Arc::new(Driver));
}
