//! How many descriptors each user has in flight: sent over sockets and not received yet.
//!
//! A user may have about as many of them as open files; a [`Flight`] counts those of one message. Owns the
//! counts. Never lets a failed send count: a [`Flight`] that is dropped is subtracted. Locks: `Leaf`.

use crate::mm::fallible::TryMap;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;

/// Files in flight, by the user who sent them.
static BY_USER: SpinLock<BTreeMap<u32, usize>, level::Leaf> = SpinLock::new(BTreeMap::new());

/// Who sends files.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    pub uid: u32,
    /// RLIMIT_NOFILE.
    pub limit: usize,
    /// CAP_SYS_RESOURCE or CAP_SYS_ADMIN: no limit.
    pub privileged: bool,
}

/// Counts files as in flight as long as it lives.
#[derive(Debug)]
pub struct Flight {
    uid: u32,
    files: usize,
}

impl Flight {
    /// Counts `files` of a sender as in flight: ETOOMANYREFS if it has too many under way already.
    pub fn begin(files: usize, sender: Sender) -> Result<Self> {
        let mut by_user = BY_USER.lock();
        let held = by_user.try_entry(sender.uid, || 0)?;
        if *held > sender.limit && !sender.privileged {
            return Err(Errno::ETOOMANYREFS);
        }
        *held = held.saturating_add(files);
        Ok(Self { uid: sender.uid, files })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut by_user = BY_USER.lock();
        if let Some(held) = by_user.get_mut(&self.uid) {
            *held = held.saturating_sub(self.files);
            if *held == 0 {
                by_user.remove(&self.uid);
            }
        }
    }
}
