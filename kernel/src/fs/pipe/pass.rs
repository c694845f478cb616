//! What splices and dumps of core do with a pipe: show its bytes to who takes some, write all of something, wait for room.
//!
//! Owns nothing. Locks: the ring's mutex, held while its bytes are shown.

use super::pipe::end_of;
use super::ring::PAGE;
use crate::mm::Source;
use crate::vfs::OpenFile;
use crate::vfs::notify::Reason;
use abi::{Errno, Result};
use core::sync::atomic::Ordering;

/// Writes all of it, waiting for room; only death ends that, or the last reader's end. For bytes that have nowhere to go back to.
pub fn write_all(file: &OpenFile, src: &mut Source<'_>) -> Result<usize> {
    let pipe = &end_of(file)?.pipe;
    let mut done = 0;
    loop {
        match pipe.write(true, false, src) {
            Ok(wrote) => done += wrote,
            Err(Errno::EAGAIN) => {}
            Err(_) if done > 0 => return Ok(done),
            Err(error) => return Err(error),
        }
        if src.remaining() == 0 {
            return Ok(done);
        }
        pipe.for_writers
            .wait_killable(|| (pipe.has_room() || !pipe.has_readers()).then_some(()))
            .map_err(|_| Errno::EINTR)?;
    }
}

/// For a writer that has nothing more to write: readers see the end of file. Returns when no reader is left, or when the
/// running task is killed.
pub fn await_readers(file: &OpenFile) -> Result<()> {
    let pipe = &end_of(file)?.pipe;
    pipe.writers.fetch_sub(1, Ordering::Relaxed);
    pipe.wake_everyone();
    let waited = pipe.for_writers.wait_killable(|| (!pipe.has_readers()).then_some(()));
    // The drop of the file's `PipeEnd` takes it away again.
    pipe.writers.fetch_add(1, Ordering::Relaxed);
    waited.map_err(|_| Errno::EINTR)
}

/// Shows `give` the first bytes, as many as `buffer` has room for, and takes out of the pipe what it took of them. As on
/// Linux nobody else reads or writes the pipe meanwhile, which may be long: who waits for that can be killed.
pub fn pass_on(
    file: &OpenFile,
    nonblock: bool,
    buffer: &mut [u8],
    give: impl FnOnce(&[u8]) -> Result<usize>,
) -> Result<usize> {
    let pipe = &end_of(file)?.pipe;
    let mut ring = loop {
        let ring = pipe.ring.lock_killable()?;
        if !ring.is_empty() {
            break ring;
        }
        if !pipe.has_writers() {
            return Ok(0);
        }
        if nonblock {
            return Err(Errno::EAGAIN);
        }
        drop(ring);
        pipe.for_readers
            .wait_interruptible(|| (pipe.has_bytes() || !pipe.has_writers()).then_some(()))?;
    };
    let shown = ring.peek(buffer)?;
    let taken = give(&buffer[..shown])?;
    let was_full = ring.is_full();
    ring.discard(taken);
    pipe.took(ring, was_full);
    pipe.hear_of_room.tell(Reason::Out);
    Ok(taken)
}

/// Waits until the pipe has room, and returns how many bytes fit at least. EPIPE if it has no reader.
pub fn wait_for_room(file: &OpenFile, nonblock: bool) -> Result<usize> {
    let pipe = &end_of(file)?.pipe;
    let room = || {
        let ring = pipe.ring.lock_killable()?;
        Ok::<_, Errno>((ring.capacity() - ring.used()) * PAGE)
    };
    loop {
        if !pipe.has_readers() {
            return Err(Errno::EPIPE);
        }
        match room()? {
            0 if nonblock => return Err(Errno::EAGAIN),
            0 => pipe
                .for_writers
                .wait_interruptible(|| (pipe.has_room() || !pipe.has_readers()).then_some(()))?,
            room => return Ok(room),
        }
    }
}
