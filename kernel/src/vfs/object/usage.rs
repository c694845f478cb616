//! [`Usage`]: who uses a regular file: writers against executors (ETXTBSY), and the plan for loading it as an executable,
//! which is kept until somebody may write to the file.
//!
//! Owns these for one inode. Never lets a file be open for writing and executed at once, except for the writer of a memfd,
//! who is not counted. Locks: `Leaf` for the plan.
#![forbid(unsafe_code)]

use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_elf::Plan;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Counters and the plan of one inode.
pub struct Usage {
    /// Open writers if positive, running executables if negative.
    writers: AtomicI32,
    /// The plan for loading the file: stored by an executor, dropped by the next writer.
    plan: SpinLock<Option<Arc<Plan>>, level::Leaf>,
    /// There may be a writer who is not counted, so a plan would not stay true.
    uncounted: AtomicBool,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            writers: AtomicI32::new(0),
            plan: SpinLock::new(None),
            uncounted: AtomicBool::new(false),
        }
    }
}

impl Usage {
    /// Counts a writer; ETXTBSY while the file is being executed.
    pub fn get_writer(&self) -> Result<()> {
        // Acquire: pairs with the Release in `allow_write`: a plan that an executor stored is seen.
        self.writers
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |n| {
                (n >= 0).then(|| n.saturating_add(1))
            })
            .map_err(|_| Errno::ETXTBSY)?;
        // Dropped with nothing locked.
        let plan = self.plan.lock().take();
        drop(plan);
        Ok(())
    }

    /// From now on there may be a writer who is not counted and does not keep others from executing the file.
    pub fn allow_uncounted_writer(&self) {
        // Relaxed: nobody else has the file yet.
        self.uncounted.store(true, Ordering::Relaxed);
    }

    /// The plan that an executor stored, if nobody could write to the file since. The caller is an executor.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        self.plan.lock().clone()
    }

    /// Stores the file's plan for the next executor. The caller is an executor, so nobody has the file open for writing; if
    /// there may be a writer who is not counted, nothing is stored.
    pub fn set_plan(&self, plan: &Arc<Plan>) {
        // Relaxed: set before the file could be executed.
        if self.uncounted.load(Ordering::Relaxed) {
            return;
        }
        let old = self.plan.lock().replace(plan.clone());
        drop(old);
    }

    /// A writer is gone.
    pub fn put_writer(&self) {
        // Release: pairs with the Acquire in `deny_write`.
        self.writers.fetch_sub(1, Ordering::Release);
    }

    /// Counts an executor; ETXTBSY while the file is open for writing.
    pub fn deny_write(&self) -> Result<()> {
        // Acquire: pairs with the Release in `put_writer`: a plan from before the last writer is not found.
        self.writers
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |n| {
                (n <= 0).then(|| n.saturating_sub(1))
            })
            .map(drop)
            .map_err(|_| Errno::ETXTBSY)
    }

    /// An executor is gone.
    pub fn allow_write(&self) {
        // Release: pairs with the Acquire in `get_writer`.
        self.writers.fetch_add(1, Ordering::Release);
    }
}
