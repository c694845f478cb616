//! The kernel's log as one reader takes it for the whole machine: /proc/kmsg, and `READ` of syslog(2).
//!
//! Owns how far it was read (what one reader takes no other sees) and who waits for lines. Never changes the log. Locks: a mutex for the place, which
//! nobody holds while he waits for a record.
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
use core::any::Any;

struct Place {
    /// The record that is next, and how many of its bytes were taken already.
    next: u64,
    taken: usize,
}

static READERS: WaitQueue = WaitQueue::new();

/// The queue that every new line wakes.
pub fn log_readers() -> &'static WaitQueue {
    &READERS
}

static PLACE: Mutex<Place> = Mutex::new(Place { next: 0, taken: 0 });

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

/// How many bytes nobody has taken.
pub fn unread() -> Result<usize> {
    let place = PLACE.lock();
    let all: Result<usize> = records(place.next).map(|record| Ok(record?.1.len())).sum();
    Ok(all?.saturating_sub(place.taken))
}

fn is_unread() -> bool {
    klog::sequences().1 > PLACE.lock().next
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
    let mut place = PLACE.lock();
    let mut done = 0;
    for record in records(place.next) {
        let (sequence, text) = record?;
        // A record that was overwritten takes with it what was taken of it.
        let taken = if sequence == place.next { place.taken } else { 0 };
        let rest = text.get(taken..).unwrap_or_default();
        let room = dst.remaining();
        if rest.len() <= room {
            dst.put(rest)?;
            done += rest.len();
            *place = Place { next: sequence + 1, taken: 0 };
            continue;
        }
        if done == 0 {
            dst.put(&rest[..room])?;
            done = room;
            *place = Place { next: sequence, taken: taken + room };
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

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn open() -> Result<Arc<dyn FileOps>> {
    Ok(try_arc(Kmsg)?)
}

pub(super) fn register() -> Result<()> {
    klog::set_notify(|| READERS.wake_all());
    register_stream("kmsg", 0o400, Capability::SYSLOG, open)
}
