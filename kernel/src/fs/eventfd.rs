//! eventfd: a counter that can be waited for.
//!
//! Owns the counter. Locks: `Stream`, never held over a user copy.
#![forbid(unsafe_code)]

use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source};
use crate::sync::{BY_RING, PollTable, SpinLock, WaitQueue, level};
use crate::try_format;
use crate::vfs::anon::anonymous;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::string::String;

/// The counter never holds more than this; `u64::MAX` means an overflow that user space cannot cause.
const MAX: u64 = u64::MAX - 1;

/// The open file.
pub struct EventFd {
    count: SpinLock<u64, level::Stream>,
    /// A read takes one, not all.
    semaphore: bool,
    for_readers: WaitQueue,
    for_writers: WaitQueue,
}

impl EventFd {
    fn take(&self) -> Option<u64> {
        let mut count = self.count.lock();
        let taken = match (*count, self.semaphore) {
            (0, _) => return None,
            (_, true) => 1,
            (all, false) => all,
        };
        *count -= taken;
        Some(taken)
    }

    /// Adds one on a ring's behalf; a full counter stays as it is.
    pub fn signal(&self) {
        if self.add(1).is_some() {
            self.for_readers.wake_events(PollEvents::READABLE.bits() | BY_RING);
        }
    }

    /// Adds one on a ring's behalf if there is nothing: whoever looks then has something to see.
    pub fn signal_if_empty(&self) {
        let mut count = self.count.lock();
        let was_empty = *count == 0;
        *count = (*count).max(1);
        drop(count);
        if was_empty {
            self.for_readers.wake_events(PollEvents::READABLE.bits() | BY_RING);
        }
    }

    fn add(&self, by: u64) -> Option<()> {
        let mut count = self.count.lock();
        *count = count.checked_add(by).filter(|&sum| sum <= MAX)?;
        Some(())
    }
}

impl FileOps for EventFd {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let taken = match self.take() {
            Some(taken) => taken,
            None if f.nonblock() => return Err(Errno::EAGAIN),
            None => self.for_readers.wait_interruptible(|| self.take())?,
        };
        self.for_writers.wake_events(PollEvents::WRITABLE.bits());
        match dst.put(&taken.to_ne_bytes())? {
            8 => Ok(8),
            _ => Err(Errno::EFAULT),
        }
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        if src.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let mut bytes = [0; 8];
        if src.take(&mut bytes)? != 8 {
            return Err(Errno::EFAULT);
        }
        let by = u64::from_ne_bytes(bytes);
        if by > MAX {
            return Err(Errno::EINVAL);
        }
        match self.add(by) {
            Some(()) => {}
            None if f.nonblock() => return Err(Errno::EAGAIN),
            None => self.for_writers.wait_interruptible(|| self.add(by))?,
        }
        self.for_readers.wake_events(PollEvents::READABLE.bits());
        Ok(8)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn lseek_nowhere(&self) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_readers);
        table.watch(&self.for_writers);
        let count = *self.count.lock();
        let mut ready = PollEvents::empty();
        if count > 0 {
            ready |= PollEvents::IN;
        }
        if count < MAX {
            ready |= PollEvents::OUT;
        }
        ready
    }

    fn fdinfo(&self, _f: &OpenFile) -> Result<String> {
        let count = *self.count.lock();
        try_format!("eventfd-count: {count:16x}\n")
    }

    fn abilities(&self) -> Abilities {
        Abilities::empty()
    }
}

/// A new eventfd.
pub fn new(initial: u32, semaphore: bool, nonblock: bool) -> Result<OpenFile> {
    let ops = try_arc(EventFd {
        count: SpinLock::new(u64::from(initial)),
        semaphore,
        for_readers: WaitQueue::new(),
        for_writers: WaitQueue::new(),
    })?;
    anonymous(ops, "[eventfd]", OpenFlags::RDWR, nonblock)
}

/// The fault `alea.crash=file-locked`: the last reference of an open file goes while a spinlock is held.
pub fn close_locked() {
    static LOCK: SpinLock<(), level::Leaf> = SpinLock::new(());
    let file = new(0, false, false);
    let _guard = LOCK.lock();
    drop(file);
}
