//! Pipes and fifos: bytes in at one end, out at the other, through a ring of pages.
//!
//! Owns the ring, the counts of readers and writers, and the queues of waiters. Never allocates for a write that fits the
//! page at hand. A write without readers is `EPIPE` here; `SIGPIPE` is sent by the system call.
//!
//! Locks: a sleeping mutex guards the ring and is held over the user copy, and by a splice until the file that it writes to
//! has the bytes: so whoever else waits for it can be killed. Another, taken inside it, guards the user's charge. How full
//! the ring is can be read without either, so a wait's condition and `poll` take none.

use super::limits;
use super::ring::PAGE;
use crate::mm::fallible::try_arc;

use super::ring::Ring;
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, PollTable, WaitQueue};
use crate::vfs::admission::admit;
use crate::vfs::anon::{AnonFs, new_path};
use crate::vfs::notify::{Listeners, Reason};
use crate::vfs::per_user::Charge;
use crate::vfs::{Abilities, Cred, FileOps, Inode, OpenFile, Owner, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::tty::FIONREAD;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// Linux cannot allocate more slots than this.
const MAX_SLOTS: usize = 1 << 16;

/// What the two ends share.
pub struct Pipe {
    _counted: Counted,
    pub(super) ring: Mutex<Ring>,
    // The next two mirror the ring. Relaxed: written under the mutex; readers without it either take it
    // before they act, or wait, and the wait queue's fences order those.
    pub(super) used: AtomicU32,
    slots: AtomicU32,
    /// What it takes of its user's limit; locked with the ring locked.
    charge: Mutex<Charge>,
    // Open ends. Relaxed: a close that empties one wakes both queues, whose fences order it.
    readers: AtomicU32,
    pub(super) writers: AtomicU32,
    /// How often the fifo was opened for reading and for writing: an open waits for the other's count to change.
    pub(super) reader_opens: AtomicU32,
    pub(super) writer_opens: AtomicU32,
    pub(super) for_readers: WaitQueue,
    pub(super) for_writers: WaitQueue,
    /// Owners of open ends who are told by signals: of bytes, and of room.
    pub(super) hear_of_bytes: Listeners,
    pub(super) hear_of_room: Listeners,
}

enum Got {
    Bytes(usize),
    Empty,
    EndOfFile,
}

impl Pipe {
    /// An empty pipe without ends.
    ///
    /// # Errors
    /// `ENFILE` if its user has too many pages of pipes, `ENOMEM`.
    pub fn new(cred: &Cred) -> Result<Arc<Self>> {
        let (charge, slots) = limits::charge_new(cred)?;
        try_arc(Self {
            _counted: Counted::new(Kind::Pipe),
            ring: Mutex::new(Ring::new(slots)?),
            used: AtomicU32::new(0),
            slots: AtomicU32::new(slots as u32),
            charge: Mutex::new(charge),
            readers: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            reader_opens: AtomicU32::new(0),
            writer_opens: AtomicU32::new(0),
            for_readers: WaitQueue::new(),
            for_writers: WaitQueue::new(),
            hear_of_bytes: Listeners::new(),
            hear_of_room: Listeners::new(),
        })
    }

    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.used.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.used.load(Ordering::Relaxed) < self.slots.load(Ordering::Relaxed)
    }

    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) != 0
    }

    pub(super) fn has_writers(&self) -> bool {
        self.writers.load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    fn read(&self, nonblock: bool, dst: &mut Sink<'_>) -> Result<usize> {
        if dst.remaining() == 0 {
            return Ok(0);
        }
        if let Some(mut ring) = self.ring.try_lock()
            && let Some((moved, used)) = ring.read_simply(dst)
        {
            self.used.store(used, Ordering::Relaxed);
            self.hear_of_room.tell(Reason::Out);
            return moved;
        }
        let got = self.read_anyhow(nonblock, dst);
        // As on Linux, whatever came of it.
        self.hear_of_room.tell(Reason::Out);
        got
    }

    #[inline(never)]
    fn read_anyhow(&self, nonblock: bool, dst: &mut Sink<'_>) -> Result<usize> {
        let mut waited = false;
        loop {
            match self.try_read(dst)? {
                Got::Bytes(n) => {
                    if waited && self.has_bytes() {
                        // The write woke only this reader: wake the next one for the bytes that are left.
                        self.for_readers.wake_events(PollEvents::READABLE.bits());
                    }
                    return Ok(n);
                }
                Got::EndOfFile => return Ok(0),
                Got::Empty if nonblock => return Err(Errno::EAGAIN),
                Got::Empty => self
                    .for_readers
                    .wait_exclusive(|| (self.has_bytes() || !self.has_writers()).then_some(()))?,
            }
            waited = true;
        }
    }

    fn try_read(&self, dst: &mut Sink<'_>) -> Result<Got> {
        let mut ring = self.ring.lock_killable()?;
        if ring.is_empty() {
            // Asked under the mutex: if no writer is left, the last one's bytes would be in the ring by now.
            return Ok(if self.has_writers() { Got::Empty } else { Got::EndOfFile });
        }
        let was_full = ring.is_full();
        let moved = ring.read(dst);
        self.took(ring, was_full);
        moved.map(Got::Bytes)
    }

    /// Bytes have been taken out: writers are woken if there was no room before.
    #[inline]
    pub(super) fn took(&self, ring: MutexGuard<'_, Ring>, was_full: bool) {
        let now_full = ring.is_full();
        self.used.store(ring.used() as u32, Ordering::Relaxed);
        drop(ring);
        if was_full && !now_full {
            self.for_writers.wake_events(PollEvents::WRITABLE.bits());
        }
    }

    #[inline(always)]
    pub(super) fn write(
        &self,
        nonblock: bool,
        packets: bool,
        src: &mut Source<'_>,
    ) -> Result<usize> {
        if src.remaining() == 0 {
            return Ok(0);
        }
        if !packets
            && let Some(mut ring) = self.ring.try_lock()
            && self.has_readers()
            && let Some((moved, used)) = ring.write_simply(src)
        {
            self.used.store(used, Ordering::Relaxed);
            drop(ring);
            self.for_readers.wake_events(PollEvents::READABLE.bits());
            self.hear_of_bytes.tell(Reason::In);
            return moved;
        }
        let put = self.write_anyhow(nonblock, packets, src);
        // As on Linux, whatever came of it.
        self.hear_of_bytes.tell(Reason::In);
        put
    }

    #[inline(never)]
    fn write_anyhow(&self, nonblock: bool, packets: bool, src: &mut Source<'_>) -> Result<usize> {
        let mut done = 0;
        let count = |done: usize, error: Errno| if done > 0 { Ok(done) } else { Err(error) };
        let mut waited = false;
        loop {
            match self.try_write(packets, src, &mut done) {
                Ok(true) => {
                    if waited && self.has_room() {
                        // The read woke only this writer: wake the next one for the room that is left.
                        self.for_writers.wake_events(PollEvents::WRITABLE.bits());
                    }
                    return Ok(done);
                }
                Ok(false) if nonblock => return count(done, Errno::EAGAIN),
                Ok(false) => {}
                Err(error) => return count(done, error),
            }
            self.hear_of_bytes.tell(Reason::In);
            let room = self
                .for_writers
                .wait_exclusive(|| (self.has_room() || !self.has_readers()).then_some(()));
            if let Err(interrupted) = room {
                return count(done, interrupted.into());
            }
            waited = true;
        }
    }

    /// Writes what fits and adds to `done` how much; true if that was all.
    fn try_write(&self, packets: bool, src: &mut Source<'_>, done: &mut usize) -> Result<bool> {
        let mut ring = self.ring.lock_killable()?;
        if !self.has_readers() {
            return Err(Errno::EPIPE);
        }
        let before = *done;
        let outcome = ring.write(src, packets, done);
        self.used.store(ring.used() as u32, Ordering::Relaxed);
        drop(ring);
        if *done != before {
            self.for_readers.wake_events(PollEvents::READABLE.bits());
        }
        outcome
    }

    /// Capacity in bytes.
    fn size(&self) -> usize {
        self.slots.load(Ordering::Relaxed) as usize * PAGE
    }

    fn set_size(&self, bytes: u32, cred: &Cred) -> Result<usize> {
        let slots = limits::slots_for(bytes)?;
        if slots > MAX_SLOTS {
            return Err(Errno::ENOMEM);
        }
        let mut ring = self.ring.lock_killable()?;
        let grows = slots > ring.capacity();
        let (mut charge, old_slots) = (self.charge.lock(), ring.capacity());
        limits::charge_size(&mut charge, slots, old_slots, cred)?;
        if let Err(error) = ring.resize(slots) {
            charge.set(old_slots as u64)?;
            return Err(error);
        }
        drop(charge);
        self.slots.store(slots as u32, Ordering::Relaxed);
        drop(ring);
        if grows {
            self.for_writers.wake_events(PollEvents::WRITABLE.bits());
        }
        Ok(slots * PAGE)
    }

    /// The last reader or writer has gone.
    pub(super) fn wake_everyone(&self) {
        self.for_readers.wake_all();
        self.for_writers.wake_all();
        if self.has_readers() != self.has_writers() {
            self.hear_of_bytes.tell(Reason::In);
            self.hear_of_room.tell(Reason::Out);
        }
    }
}

/// One open end of a pipe, or an open fifo: it may read, write, or both.
pub struct PipeEnd {
    pub(super) pipe: Arc<Pipe>,
    reads: bool,
    writes: bool,
    /// For a fifo, the inode that keeps the pipe while it has users.
    pub(super) fifo: Option<Arc<dyn Inode>>,
    /// `writer_opens` at a non-blocking open for reading without a writer: no hang-up is reported until one has come.
    pub(super) no_writer_since: Option<u32>,
}

impl PipeEnd {
    pub(super) fn new(pipe: Arc<Pipe>, reads: bool, writes: bool) -> Self {
        pipe.readers.fetch_add(u32::from(reads), Ordering::Relaxed);
        pipe.writers.fetch_add(u32::from(writes), Ordering::Relaxed);
        Self { pipe, reads, writes, fifo: None, no_writer_since: None }
    }

    fn hung_up(&self) -> bool {
        let opens = self.pipe.writer_opens.load(Ordering::Relaxed);
        !self.pipe.has_writers() && self.no_writer_since != Some(opens)
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let reader_left = self.reads && self.pipe.readers.fetch_sub(1, Ordering::Relaxed) == 1;
        let writer_left = self.writes && self.pipe.writers.fetch_sub(1, Ordering::Relaxed) == 1;
        if reader_left || writer_left {
            self.pipe.wake_everyone();
        }
        if let Some(inode) = &self.fifo {
            forget_unused(inode, &self.pipe);
        }
    }
}

impl FileOps for PipeEnd {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        self.pipe.read(f.nonblock(), dst)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let flags = f.flags();
        let packets = flags.contains(OpenFlags::DIRECT);
        self.pipe.write(flags.contains(OpenFlags::NONBLOCK), packets, src)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        let mut ready = PollEvents::empty();
        if self.reads {
            table.watch(&self.pipe.for_readers);
            if self.pipe.has_bytes() {
                ready |= PollEvents::READABLE;
            }
            if self.hung_up() {
                ready |= PollEvents::HUP;
            }
        }
        if self.writes {
            table.watch(&self.pipe.for_writers);
            if self.pipe.has_room() {
                ready |= PollEvents::WRITABLE;
            }
            if !self.pipe.has_readers() {
                ready |= PollEvents::ERR;
            }
        }
        ready
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        if cmd != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        let bytes = self.pipe.ring.lock_killable()?.bytes();
        UserPtr::<i32>::new(arg).write(&i32::try_from(bytes).unwrap_or(i32::MAX))?;
        Ok(0)
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        if self.reads {
            self.pipe.hear_of_bytes.changed(f, fd)?;
        }
        if self.writes {
            self.pipe.hear_of_room.changed(f, fd)?;
        }
        Ok(())
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}

/// An end of a fifo went away: forgets the pipe if it was the last.
pub(super) fn forget_unused(inode: &Arc<dyn Inode>, pipe: &Arc<Pipe>) {
    let Some(slot) = inode.special() else { return };
    let mut kept = slot.lock();
    if pipe.has_readers() || pipe.has_writers() {
        return;
    }
    let is_ours =
        kept.as_ref().is_some_and(|any| core::ptr::addr_eq(Arc::as_ptr(any), Arc::as_ptr(pipe)));
    let gone = if is_ours { kept.take() } else { None };
    drop(kept);
    drop(gone);
}

/// `pipe2`: the reading and the writing end of a new pipe.
pub fn new_pair(flags: OpenFlags, cred: &Arc<Cred>) -> Result<(OpenFile, OpenFile)> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
    let path = new_path(AnonFs::Pipe, abi::fs::S_IFIFO | 0o600, "", owner)?;
    let pipe = Pipe::new(cred)?;
    if let Some(slot) = path.inode().special() {
        // An open through /proc/PID/fd finds the pipe here.
        *slot.lock() = Some(pipe.clone());
    }
    let reader = try_arc(PipeEnd::new(pipe.clone(), true, false))?;
    let writer = try_arc(PipeEnd::new(pipe, false, true))?;
    let read_flags = flags.intersection(OpenFlags::NONBLOCK);
    let write_flags =
        flags.intersection(OpenFlags::NONBLOCK.union(OpenFlags::DIRECT)).union(OpenFlags::WRONLY);
    Ok((
        OpenFile::new(admit()?, reader, path.clone(), read_flags),
        OpenFile::new(admit()?, writer, path, write_flags),
    ))
}

pub(super) fn end_of(file: &OpenFile) -> Result<&PipeEnd> {
    file.downcast().ok_or(Errno::EBADF)
}

/// Whether the file is an end of a pipe.
pub fn is_pipe(file: &OpenFile) -> bool {
    file.downcast::<PipeEnd>().is_some()
}

/// Reads from a pipe; `nonblock` stands in place of the file's flag.
pub fn read_with(file: &OpenFile, nonblock: bool, dst: &mut Sink<'_>) -> Result<usize> {
    end_of(file)?.pipe.read(nonblock, dst)
}

/// Writes to a pipe; `nonblock` stands in place of the file's flag.
pub fn write_with(file: &OpenFile, nonblock: bool, src: &mut Source<'_>) -> Result<usize> {
    end_of(file)?.pipe.write(nonblock, false, src)
}

/// `F_GETPIPE_SZ`; EBADF if the file is no pipe.
pub fn size(file: &OpenFile) -> Result<usize> {
    Ok(end_of(file)?.pipe.size())
}

/// `F_SETPIPE_SZ`: returns the size that was set.
pub fn set_size(file: &OpenFile, bytes: u32, caller: &Cred) -> Result<usize> {
    end_of(file)?.pipe.set_size(bytes, caller)
}
