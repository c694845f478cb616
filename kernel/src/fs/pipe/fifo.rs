//! Fifos: pipes that are found by name, and the rules of which open waits for which.
//!
//! The pipe is kept in the inode's slot while anybody has the fifo open (or is opening it); the last close frees
//! it with the bytes in it. The slot's spinlock makes finding the pipe and counting a new end one step.

use super::pipe::{Pipe, PipeEnd, forget_unused};
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
    let nonblock = flags.contains(OpenFlags::NONBLOCK);
    let needs_reader = writes && !reads && nonblock && !is_anonymous(&**inode);
    let Joined { mut end, has_readers, has_writers, readers_seen, writers_seen } =
        join(inode, reads, writes, needs_reader, cred)?;
    let pipe = end.pipe.clone();
    if reads {
        pipe.for_writers.wake_all();
    }
    if writes {
        pipe.for_readers.wake_all();
    }
    if is_anonymous(&**inode) {
        // A pipe opened through /proc/PID/fd waits for nobody.
        return Ok(try_arc(end)?);
    }
    match (reads, writes) {
        (true, false) if !has_writers && nonblock => {
            end.no_writer_since = Some(writers_seen);
        }
        (true, false) if !has_writers => {
            wait_for_other(&pipe.for_readers, &pipe.writer_opens, writers_seen)?;
        }
        (false, true) if !has_readers => {
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

/// An end, and what its open found in the one step that counted it: who was there, and how often the others' side had been opened. So of two
/// that open both sides at once the later one finds the earlier, however soon that one goes.
struct Joined {
    end: PipeEnd,
    has_readers: bool,
    has_writers: bool,
    readers_seen: u32,
    writers_seen: u32,
}

/// An end of the fifo's pipe, counted as a reader or writer; the pipe is made if there is none. `ENXIO` if there has to be a reader, and is
/// none.
fn join(
    inode: &Arc<dyn Inode>,
    reads: bool,
    writes: bool,
    needs_reader: bool,
    cred: &Cred,
) -> Result<Joined> {
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
        let (has_readers, has_writers) = (pipe.has_readers(), pipe.has_writers());
        if needs_reader && !has_readers {
            drop(kept);
            forget_unused(inode, &pipe);
            return Err(Errno::ENXIO);
        }
        let readers_seen = pipe.reader_opens.fetch_add(u32::from(reads), Ordering::Relaxed);
        let writers_seen = pipe.writer_opens.fetch_add(u32::from(writes), Ordering::Relaxed);
        let mut end = PipeEnd::new(pipe, reads, writes);
        end.fifo = Some(inode.clone());
        return Ok(Joined { end, has_readers, has_writers, readers_seen, writers_seen });
    }
}

/// Makes fifos work: called once at boot.
pub fn init() {
    crate::vfs::object::inode::register_fifo_opener(open_fifo);
}
