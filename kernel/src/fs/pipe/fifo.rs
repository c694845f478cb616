//! Fifos: pipes that are found by name, and the rules of which open waits for which.
//!
//! The pipe is kept in the inode's slot while anybody has the fifo open (or is opening it); the last close frees
//! it with the bytes in it. The slot's spinlock makes finding the pipe and counting a new end one step.

use super::pipe::{Pipe, PipeEnd};
use crate::mm::fallible::try_arc;
use crate::sync::WaitQueue;
use crate::vfs::anon::is_anonymous;
use crate::vfs::{Cred, FileOps, Inode};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// Opens a fifo: finds or makes its pipe and waits for the other end as the flags ask.
pub fn open_fifo(
    inode: &Arc<dyn Inode>,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<dyn FileOps>> {
    let (reads, writes) = (flags.readable(), flags.writable());
    if !reads && !writes {
        return Err(Errno::EINVAL);
    }
    let mut end = join(inode, reads, writes, cred)?;
    let pipe = end.pipe.clone();
    let nonblock = flags.contains(OpenFlags::NONBLOCK);
    if writes && !reads && nonblock && !pipe.has_readers() && !is_anonymous(&**inode) {
        return Err(Errno::ENXIO);
    }
    let readers_seen = pipe.reader_opens.load(Ordering::Relaxed);
    let writers_seen = pipe.writer_opens.load(Ordering::Relaxed);
    if reads {
        pipe.reader_opens.fetch_add(1, Ordering::Relaxed);
        pipe.for_writers.wake_all();
    }
    if writes {
        pipe.writer_opens.fetch_add(1, Ordering::Relaxed);
        pipe.for_readers.wake_all();
    }
    if is_anonymous(&**inode) {
        // A pipe opened through /proc/PID/fd waits for nobody.
        return Ok(try_arc(end)?);
    }
    match (reads, writes) {
        (true, false) if !pipe.has_writers() && nonblock => {
            end.no_writer_since = Some(writers_seen);
        }
        (true, false) if !pipe.has_writers() => {
            wait_for_other(&pipe.for_readers, &pipe.writer_opens, writers_seen)?;
        }
        (false, true) if !pipe.has_readers() => {
            wait_for_other(&pipe.for_writers, &pipe.reader_opens, readers_seen)?;
        }
        _ => {}
    }
    Ok(try_arc(end)?)
}

/// Waits until somebody has opened the other end, even if they closed it again.
fn wait_for_other(queue: &WaitQueue, opens: &AtomicU32, seen: u32) -> Result<()> {
    Ok(queue.wait_interruptible(|| (opens.load(Ordering::Relaxed) != seen).then_some(()))?)
}

/// An end of the fifo's pipe, counted as a reader or writer; the pipe is made if there is none.
fn join(inode: &Arc<dyn Inode>, reads: bool, writes: bool, cred: &Cred) -> Result<PipeEnd> {
    let slot = inode.special().ok_or(Errno::ENXIO)?;
    let mut fresh = None;
    loop {
        let mut kept = slot.lock();
        if kept.is_none() {
            *kept = match fresh.take() {
                Some(pipe) => Some(pipe as Arc<_>),
                None => {
                    drop(kept);
                    fresh = Some(Pipe::new(cred)?);
                    continue;
                }
            };
        }
        let pipe = kept.as_ref().and_then(|any| any.clone().downcast::<Pipe>().ok());
        let pipe = pipe.ok_or(Errno::ENXIO)?;
        let mut end = PipeEnd::new(pipe, reads, writes);
        end.fifo = Some(inode.clone());
        return Ok(end);
    }
}

/// Makes fifos work: called once at boot.
pub fn init() {
    crate::vfs::object::inode::register_fifo_opener(open_fifo);
}
