//! What the mapped buffers of each user take: `kernel.perf_event_mlock_kb` for each CPU, and beyond that what may be locked.
//!
//! Owns one count for each user that has buffers. A count that nobody has any more is the next user's. Never refuses a buffer that
//! is there already. Locks: the mutex of the counts, inside that of all events.

use crate::base::{PAGE_SIZE, percpu};
use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::task::current::current;
use crate::process::task::limits::Resource;
use crate::sync::{Mutex, Pace};
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Relaxed: both change under the mutex of the counts, but for the pages of buffers that go: so the number is only ever added to and
/// taken from, and a check may miss some that are let go.
struct User {
    uid: AtomicU32,
    pages: AtomicU64,
}

static USERS: Mutex<Vec<Arc<User>>> = Mutex::new(Vec::new());

/// The pages of one buffer, which are counted as long as it is.
pub(super) struct Locked {
    user: Arc<User>,
    pages: u64,
}

impl Locked {
    /// Counts a buffer of the running task's user, who has `free` bytes for each CPU and, unless `unlimited`, beyond that what he
    /// may lock; `EPERM`. What mlock has locked is not held against it, as on Linux.
    pub fn new(pages: u64, free: u64, unlimited: bool) -> Result<Self> {
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
        let counted = Self { user, pages };
        let free = free.saturating_mul(percpu::cpus_online() as u64);
        let beyond = all.saturating_mul(PAGE_SIZE as u64).saturating_sub(free);
        let limit = task.process().limits().soft(Resource::MemLock);
        let may = unlimited || task.cred().capable(Capability::IPC_LOCK);
        if beyond > limit && !may {
            return Err(Errno::EPERM);
        }
        Ok(counted)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.user.pages.fetch_sub(self.pages, Ordering::Relaxed);
    }
}
