//! [`Usage`]: who uses a regular file: writers against executors (ETXTBSY), and file locks.
#![forbid(unsafe_code)]

use super::file::OpenFile;
use super::locks::{FileLocks, LockKind, RecordLock};
use crate::sync::Once;
use abi::{Errno, Result};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicI32, Ordering};

/// Counters and locks of one inode.
pub struct Usage {
    /// Open writers if positive, running executables if negative. Relaxed: the counter protects nothing
    /// but itself.
    writers: AtomicI32,
    /// Made with the first lock.
    locks: Once<Box<FileLocks>>,
}

impl Default for Usage {
    fn default() -> Self {
        Self { writers: AtomicI32::new(0), locks: Once::new() }
    }
}

impl Usage {
    /// Counts a writer; ETXTBSY while the file is being executed.
    pub fn get_writer(&self) -> Result<()> {
        self.writers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n >= 0).then(|| n.saturating_add(1))
            })
            .map(drop)
            .map_err(|_| Errno::ETXTBSY)
    }

    /// A writer is gone.
    pub fn put_writer(&self) {
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts an executor; ETXTBSY while the file is open for writing.
    pub fn deny_write(&self) -> Result<()> {
        self.writers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n <= 0).then(|| n.saturating_sub(1))
            })
            .map(drop)
            .map_err(|_| Errno::ETXTBSY)
    }

    /// An executor is gone.
    pub fn allow_write(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// The lock that stands in the way of `wanted`.
    pub fn conflict(&self, wanted: &RecordLock) -> Option<RecordLock> {
        self.locks.get()?.conflict(wanted)
    }

    /// Takes a record lock, see [`FileLocks::lock`].
    pub fn lock(&self, lock: &RecordLock, waits: bool) -> Result<()> {
        self.locks.call_once(Box::default).lock(lock, waits)
    }

    /// Releases record locks.
    pub fn unlock(&self, lock: &RecordLock) -> Result<()> {
        self.locks.get().map_or(Ok(()), |locks| locks.unlock(lock))
    }

    /// `flock`, see [`FileLocks::flock`].
    pub fn flock(&self, owner: usize, kind: LockKind, waits: bool) -> Result<()> {
        self.locks.call_once(Box::default).flock(owner, kind, waits)
    }

    /// Releases a `flock`.
    pub fn unflock(&self, owner: usize) {
        if let Some(locks) = self.locks.get() {
            locks.unflock(owner);
        }
    }

    /// A process closed a descriptor of the file: its record locks go.
    pub fn release_owner(&self, owner: usize) {
        if let Some(locks) = self.locks.get() {
            locks.release(owner);
        }
    }

    /// An open file description is gone: its `flock` and OFD locks go.
    pub fn release_file(&self, file: &OpenFile) {
        self.release_owner(core::ptr::from_ref(file) as usize);
    }
}
