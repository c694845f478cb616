//! [`Usage`]: who uses a regular file: writers against executors (ETXTBSY), and file locks.
#![forbid(unsafe_code)]

use super::file::OpenFile;
use abi::{Errno, Result};
use core::sync::atomic::{AtomicI32, Ordering};

/// Counters and locks of one inode.
#[derive(Default)]
pub struct Usage {
    /// Open writers if positive, running executables if negative. Relaxed: the counter protects nothing
    /// but itself.
    writers: AtomicI32,
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

    /// A process closed a descriptor of the file: its record locks go.
    pub fn release_owner(&self, _owner: usize) {}

    /// An open file description is gone: its `flock` and OFD locks go.
    pub fn release_file(&self, _file: &OpenFile) {}
}
