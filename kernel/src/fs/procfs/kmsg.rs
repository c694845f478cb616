//! The kernel's log, read at one place for the whole machine: /proc/kmsg, and `SYSLOG_ACTION_READ` of syslog(2).
//!
//! Owns how far it was read (what one reader takes no other sees) and the queue of those who wait for lines. Never changes
//! the log. Locks: a mutex, held while records are taken and never while a reader waits for one.
#![forbid(unsafe_code)]

use super::fixed::register_stream;
use crate::diag::klog;
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::{Mutex, PollTable, WaitQueue};
use crate::try_format;
use crate::vfs::{Capability, FileOps, OpenFile, PollEvents};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

static READERS: WaitQueue = WaitQueue::new();

/// The queue that every new line wakes.
pub fn log_readers() -> &'static WaitQueue {
    &READERS
}

/// The next record. Changed with [`TAKEN`] held. Relaxed: who reads it without that lock looks again with it.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How many bytes of the next record were taken already.
static TAKEN: Mutex<usize> = Mutex::new(0);

/// The records from `from` on, as text, each with its number.
pub fn records(from: u64) -> impl Iterator<Item = Result<(u64, Vec<u8>)>> {
    let mut at = from;
    core::iter::from_fn(move || {
        let line = klog::read(at)?;
        at = line.sequence + 1;
        Some(record(&line).map(|text| (line.sequence, text)))
    })
}

fn record(line: &klog::Line) -> Result<Vec<u8>> {
    let micros = line.time_ns / 1000;
    let (secs, micros) = (micros / 1_000_000, micros % 1_000_000);
    let mut text = try_format!("<{}>[{secs:5}.{micros:06}] ", line.level)?.into_bytes();
    text.try_extend_from_slice(line.text())?;
    text.try_push(b'\n')?;
    Ok(text)
}

/// How many bytes have not been taken yet.
pub fn unread() -> Result<usize> {
    let taken = TAKEN.lock();
    let next = NEXT.load(Ordering::Relaxed);
    let all: Result<usize> = records(next).map(|record| Ok(record?.1.len())).sum();
    Ok(all?.saturating_sub(*taken))
}

fn is_unread() -> bool {
    klog::sequences().1 > NEXT.load(Ordering::Relaxed)
}

/// Takes as many whole records as `dst` has room for, or a part of one that is longer; waits if there is none.
pub fn take(dst: &mut Sink<'_>, nonblock: bool) -> Result<usize> {
    loop {
        if !is_unread() {
            if nonblock {
                return Err(Errno::EAGAIN);
            }
            log_readers().wait_interruptible(|| is_unread().then_some(()))?;
        }
        let taken = take_unread(dst)?;
        if taken > 0 || dst.remaining() == 0 {
            return Ok(taken);
        }
        // Another reader was faster.
    }
}

fn take_unread(dst: &mut Sink<'_>) -> Result<usize> {
    let mut taken = TAKEN.lock();
    let first = NEXT.load(Ordering::Relaxed);
    let mut done = 0;
    for record in records(first) {
        let (sequence, text) = record?;
        // If the record that was taken in part was overwritten, the next one is taken from its beginning.
        let from = if sequence == first { *taken } else { 0 };
        let rest = text.get(from..).unwrap_or_default();
        let room = dst.remaining();
        if rest.len() <= room {
            dst.put(rest)?;
            done += rest.len();
            *taken = 0;
            NEXT.store(sequence + 1, Ordering::Relaxed);
            continue;
        }
        if done == 0 {
            dst.put(&rest[..room])?;
            done = room;
            *taken = from + room;
            NEXT.store(sequence, Ordering::Relaxed);
        }
        break;
    }
    Ok(done)
}

struct Kmsg;

impl FileOps for Kmsg {
    fn read(&self, file: &OpenFile, dst: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        if dst.remaining() == 0 { Ok(0) } else { take(dst, file.nonblock()) }
    }

    fn write(&self, _: &OpenFile, _: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        Err(Errno::EIO)
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(log_readers());
        if is_unread() { PollEvents::READABLE } else { PollEvents::empty() }
    }

    fn is_watchable(&self, _: &OpenFile) -> bool {
        true
    }
}

fn open() -> Result<Arc<dyn FileOps>> {
    Ok(try_arc(Kmsg)?)
}

pub(super) fn register() -> Result<()> {
    klog::set_notify(|| READERS.wake_all());
    register_stream("kmsg", 0o400, Some(Capability::SYSLOG), open)
}
