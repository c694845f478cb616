//! [`List`]: the list of all sockets of a kind, by protocol.
//!
//! Owns the numbers of places. Never walks it in one hold of its lock, but by windows; no reference to a socket is dropped under it.
//! Locks: a `Leaf`.

use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::sync::{Pace, SpinLock, level};
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Bound;
use core::sync::atomic::{AtomicU64, Ordering};

/// Relaxed: only uniqueness matters.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// So many sockets are looked up before the lock is released for a moment.
const WINDOW: usize = 64;

/// The place of a new socket: its protocol, and which it is, of more than there will be for years.
pub(super) fn place(protocol: i32) -> u64 {
    let protocol = u64::from(protocol.unsigned_abs() as u16);
    protocol << 48 | NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The sockets.
pub(super) struct List<T>(SpinLock<BTreeMap<u64, Weak<T>>, level::Leaf>);

impl<T> List<T> {
    pub(super) const fn new() -> Self {
        Self(SpinLock::new(BTreeMap::new()))
    }

    /// Adds a socket that got this place.
    pub(super) fn add(&self, place: u64, socket: &Arc<T>) -> Result<()> {
        let put = self.0.lock().try_put(place, Arc::downgrade(socket));
        put.map(drop)
    }

    /// A socket is gone.
    pub(super) fn remove(&self, place: u64) {
        let gone = self.0.lock().remove(&place);
        drop(gone);
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The sockets behind `last`, a window of them, and the last place of it, unless it has come to the end.
    pub(super) fn window(&self, last: u64) -> Result<(Vec<Arc<T>>, Option<u64>)> {
        // No reference may be dropped under the lock, so the room for all is made first.
        let mut found = Vec::with_room(WINDOW)?;
        let all = self.0.lock();
        let behind = all.range((Bound::Excluded(last), Bound::Unbounded));
        let mut reached = None;
        for (nth, (&place, socket)) in behind.take(WINDOW).enumerate() {
            if let Some(socket) = socket.upgrade() {
                found.try_push(socket)?; // there is room
            }
            reached = (nth + 1 == WINDOW).then_some(place);
        }
        drop(all);
        Ok((found, reached))
    }

    /// Shows `look` all sockets, unlocked.
    pub(super) fn for_each(&self, mut look: impl FnMut(&Arc<T>)) -> Result<()> {
        let mut next = Some(0);
        while let Some(from) = next {
            let (sockets, last) = self.window(from)?;
            sockets.iter().paced().for_each(&mut look);
            next = last;
        }
        Ok(())
    }
}
