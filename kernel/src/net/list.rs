//! [`List`]: the list of all sockets of a kind, and how lists of sockets are gone through, by windows.
//!
//! Owns nothing itself. Never walks a list in one hold of its lock; no reference to a socket is dropped under it. Locks: a
//! `Leaf` for each list.

use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::sync::{Pace, SpinLock, level};
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Bound;

/// So many sockets, or ports, are looked at before a list's lock is released for a moment: others need it too.
pub(super) const WINDOW: usize = 64;

/// Shows `look` all that a list has, unlocked: `window` makes a window of it from a place on, and says where the next begins; the first
/// is at 0.
pub(super) fn by_windows<T>(
    mut window: impl FnMut(u64) -> Result<(Vec<T>, Option<u64>)>,
    mut look: impl FnMut(&T),
) -> Result<()> {
    let mut next = Some(0);
    while let Some(from) = next {
        let (found, rest) = window(from)?;
        found.iter().paced().for_each(&mut look);
        next = rest;
    }
    Ok(())
}

/// Sockets by their places, of which 0 is none's.
pub(super) struct List<T>(SpinLock<BTreeMap<u64, Weak<T>>, level::Leaf>);

impl<T> List<T> {
    pub(super) const fn new() -> Self {
        Self(SpinLock::new(BTreeMap::new()))
    }

    /// Adds a socket that got this place; how many there are.
    pub(super) fn add(&self, place: u64, socket: &Arc<T>) -> Result<usize> {
        let mut all = self.0.lock();
        let old = all.try_put(place, Arc::downgrade(socket))?;
        let count = all.len();
        drop(all);
        drop(old);
        Ok(count)
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
    pub(super) fn for_each(&self, look: impl FnMut(&Arc<T>)) -> Result<()> {
        by_windows(|last| self.window(last), look)
    }
}
