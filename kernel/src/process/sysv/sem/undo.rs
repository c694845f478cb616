//! [`UndoList`]: which sets the end of a process is to be told of.
//!
//! Owns the number of the next list. The adjustments themselves are kept by each set, under the list's key, so that they
//! go with it. Never applied before the last task that shares it has left. Locks: `Leaf` for the sets that it knows,
//! taken with a set locked.

use crate::mm::fallible::{TryMap, try_arc};
use crate::process::current;
use crate::sync::{Ended, Pace, Part, Parted, Parts, SpinLock, level};
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// What keeps adjustments of lists: a set.
pub trait Adjusted: Send + Sync {
    /// The processes that shared the adjustments of `key` have ended, `pid` last.
    fn take_back(&self, key: u64, pid: i32);
}

/// The sets that keep adjustments of a list, by identifier.
pub struct Visited(SpinLock<BTreeMap<i32, Arc<dyn Adjusted>>, level::Leaf>);

impl Visited {
    /// The set is removed.
    pub fn forget(&self, id: i32) {
        let set = self.0.lock().remove(&id);
        drop(set);
    }
}

/// What the tasks that share it keep: one without CLONE_SYSVSEM has its own.
pub struct UndoList {
    parts: Parts,
    key: u64,
    visited: Arc<Visited>,
}

impl UndoList {
    pub fn new() -> Result<Undo> {
        /// Relaxed: only uniqueness matters.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let visited = try_arc(Visited(SpinLock::new(BTreeMap::new())))?;
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        try_arc(Self { parts: Parts::new(), key, visited }).map(Undo::first)
    }

    /// By which sets know it.
    pub fn key(&self) -> u64 {
        self.key
    }

    pub(super) fn visited(&self) -> &Arc<Visited> {
        &self.visited
    }

    /// The set with this identifier keeps adjustments of this list.
    pub(super) fn visit(&self, id: i32, set: Arc<dyn Adjusted>) -> Result<()> {
        self.visited.0.lock().try_put(id, set).map(drop)
    }
}

/// A task's part in its list.
pub type Undo = Part<UndoList>;

impl Parted for UndoList {
    fn parts(&self) -> &Parts {
        &self.parts
    }

    /// All who shared it have ended, the running process last.
    fn ended(self: &Arc<Self>, _: Ended) {
        let pid = current().process().pid();
        let sets = core::mem::take(&mut *self.visited.0.lock());
        for (_, set) in sets.into_iter().paced() {
            set.take_back(self.key, pid);
        }
    }
}
