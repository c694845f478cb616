//! `tee` copies the bytes of one pipe to another and leaves them in the first; `splice` moves them.
//!
//! Locks: the rings of both pipes at once, that of the pipe with the lower address first.

use super::pipe::{Pipe, PipeEnd};
use crate::vfs::notify::Reason;
use crate::vfs::{OpenFile, PollEvents};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// What becomes of the bytes in the first pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Keeps,
    Loses,
}

/// `tee`: copies up to `len` bytes of one pipe to another and leaves them in the first.
pub fn tee(from: &OpenFile, to: &OpenFile, len: usize, nonblock: bool) -> Result<usize> {
    between(from, to, len, nonblock, Origin::Keeps)
}

/// `splice`: moves up to `len` bytes of one pipe to another.
pub fn splice(from: &OpenFile, to: &OpenFile, len: usize, nonblock: bool) -> Result<usize> {
    between(from, to, len, nonblock, Origin::Loses)
}

fn between(
    from: &OpenFile,
    to: &OpenFile,
    len: usize,
    nonblock: bool,
    becomes: Origin,
) -> Result<usize> {
    if !from.readable() || !to.writable() {
        return Err(Errno::EBADF);
    }
    let (source, target) = match (from.downcast::<PipeEnd>(), to.downcast::<PipeEnd>()) {
        (Some(source), Some(target)) => (&source.pipe, &target.pipe),
        _ => return Err(Errno::EINVAL),
    };
    if Arc::ptr_eq(source, target) {
        return Err(Errno::EINVAL);
    }
    if len == 0 {
        return Ok(0);
    }
    loop {
        if let Some(done) = try_tee(source, target, len, becomes)? {
            return Ok(done);
        }
        if nonblock {
            return Err(Errno::EAGAIN);
        }
        source
            .for_readers
            .wait_interruptible(|| (source.has_bytes() || !source.has_writers()).then_some(()))?;
        target
            .for_writers
            .wait_interruptible(|| (target.has_room() || !target.has_readers()).then_some(()))?;
    }
}

/// Copies or moves what is there, in one step; `None` if the source is empty or the target full.
fn try_tee(
    source: &Arc<Pipe>,
    target: &Arc<Pipe>,
    len: usize,
    becomes: Origin,
) -> Result<Option<usize>> {
    // By address, so that two tees in opposite directions cannot wait for each other.
    let source_first = Arc::as_ptr(source) < Arc::as_ptr(target);
    let (mut from, mut to);
    if source_first {
        from = source.ring.lock_killable()?;
        to = target.ring.lock_killable()?;
    } else {
        to = target.ring.lock_killable()?;
        from = source.ring.lock_killable()?;
    }
    if !target.has_readers() {
        return Err(Errno::EPIPE);
    }
    if from.is_empty() && !source.has_writers() {
        return Ok(Some(0));
    }
    let done = to.tee(&mut from, len);
    target.used.store(to.used() as u32, Ordering::Relaxed);
    drop(to);
    if done == 0 {
        return Ok(None);
    }
    if becomes == Origin::Loses {
        let was_full = from.is_full();
        from.discard(done);
        source.took(from, was_full);
        source.hear_of_room.tell(Reason::Out);
    } else {
        drop(from);
    }
    target.for_readers.wake_events(PollEvents::READABLE.bits());
    target.hear_of_bytes.tell(Reason::In);
    Ok(Some(done))
}
