//! What the mapped buffers of each user take: `kernel.perf_event_mlock_kb` for each CPU, and beyond that what may be locked.
//!
//! Owns one count for each user that has buffers. A count that nobody has any more is the next user's. Never refuses a buffer that
//! is there already. Locks: the mutex of the counts, inside that of all events; `Leaf`, for whether a buffer is counted.

use crate::base::{PAGE_SIZE, percpu};
use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::task::current::current;
use crate::process::task::limits::Resource;
use crate::sync::{Mutex, Pace, SpinLock, level};
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Relaxed: both change under the mutex of the counts, but for the pages of buffers that are unmapped or mapped again: so the
/// number is only ever added to and taken from, and a check may miss some that are let go.
struct User {
    uid: AtomicU32,
    pages: AtomicU64,
}

static USERS: Mutex<Vec<Arc<User>>> = Mutex::new(Vec::new());

/// The pages of one buffer, which are counted while it is mapped.
pub(super) struct Locked {
    user: Arc<User>,
    pages: u64,
    is_counted: SpinLock<bool, level::Leaf>,
}

impl Locked {
    /// Counts a buffer of the running task's user, who has `free` bytes for each CPU and, unless `unlimited`, beyond that what he
    /// may lock, of which `in_space` pages are locked in his address space; `EPERM`.
    pub fn new(pages: u64, in_space: u64, free: u64, unlimited: bool) -> Result<Self> {
        let task = current();
        let uid = task.cred().uid;
        let mut users = USERS.lock();
        let is_own = |user: &&Arc<User>| user.uid.load(Ordering::Relaxed) == uid;
        let is_free = |user: &&Arc<User>| Arc::strong_count(user) == 1;
        let known = users.iter().paced().find(is_own);
        let user = match known.or_else(|| users.iter().paced().find(is_free)) {
            Some(user) => user.clone(),
            None => {
                let user = try_arc(User { uid: AtomicU32::new(uid), pages: AtomicU64::new(0) })?;
                users.try_push(user.clone())?;
                user
            }
        };
        user.uid.store(uid, Ordering::Relaxed);
        let all = user.pages.fetch_add(pages, Ordering::Relaxed).saturating_add(pages);
        // Counted from here on, until it is dropped.
        let counted = Self { user, pages, is_counted: SpinLock::new(true) };
        let free = free.saturating_mul(percpu::cpus_online() as u64);
        let beyond = all.saturating_mul(PAGE_SIZE as u64).saturating_sub(free);
        let locked = in_space.saturating_mul(PAGE_SIZE as u64);
        let limit = task.process().limits().soft(Resource::MemLock);
        let may = unlimited || task.cred().capable(Capability::IPC_LOCK);
        if beyond != 0 && locked.saturating_add(beyond) > limit && !may {
            return Err(Errno::EPERM);
        }
        Ok(counted)
    }

    /// Says whether it is to be counted, as `change` tells, which nobody else does meanwhile.
    pub fn settle(&self, change: impl FnOnce() -> bool) {
        let mut is_counted = self.is_counted.lock();
        let wanted = change();
        match (*is_counted, wanted) {
            (true, false) => self.user.pages.fetch_sub(self.pages, Ordering::Relaxed),
            (false, true) => self.user.pages.fetch_add(self.pages, Ordering::Relaxed),
            _ => return,
        };
        *is_counted = wanted;
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.settle(|| false);
    }
}
