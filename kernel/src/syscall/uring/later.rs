//! Requests that go on when a thread of their process returns to user mode, so that a program which only looks at its completions
//! sees them.
//!
//! A bell leaves the ring to the thread that submitted; the thread then goes through the rings of its memory that have work. Of a ring
//! whose requests go on only when it is entered, it tells the eventfd. Owns the list of rings. Never keeps a ring alive. Locks: a mutex around the list, with nothing taken below it, then a ring's.

use super::again::retry;
use super::parked::{Tower, When};
use super::ring::Ring;
use crate::mm::fallible::TryMap;
use crate::process;
use crate::sync::{Mutex, Pace, cond_resched};
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

/// By the addresses of a ring's memory and of the ring itself, both of which its weak references keep apart from all others.
type Key = (usize, usize);

/// The bells, which tell without the ring whether there is work, and the ring.
type Entry = (Arc<Tower>, Weak<Ring>);

static RINGS: Mutex<BTreeMap<Key, Entry>> = Mutex::new(BTreeMap::new());

/// Adds a ring.
pub fn add(ring: &Arc<Ring>) -> Result<()> {
    let key = (ring.memory(), Arc::as_ptr(ring).addr());
    RINGS.lock().try_put(key, (ring.tower.clone(), Arc::downgrade(ring)))?;
    Ok(())
}

impl Drop for Ring {
    fn drop(&mut self) {
        let gone = RINGS.lock().remove(&(self.memory(), core::ptr::from_mut(self).addr()));
        // With nothing locked.
        drop(gone);
        // One by one, as ten thousand may wait.
        let state = self.state_mut();
        for _ in core::iter::from_fn(|| state.parked.pop_first()).paced() {}
        for _ in core::iter::from_fn(|| state.deferred.pop_front()).paced() {}
    }
}

/// Carries on with what waits in the rings of the running task's memory.
pub fn go_on() {
    let Some(memory) = process::current().mm_arc() else { return };
    let memory = Arc::as_ptr(&memory).addr();
    let mut from = 0;
    while let Some((at, ring)) = next(memory, from) {
        from = at + 1;
        if let Some(ring) = ring.upgrade() {
            // Whoever has it may wait for long: a task that is killed has nothing to go on with.
            let Ok(mut state) = ring.lock() else { return };
            if When::of(ring.flags) == When::Entering {
                ring.tell_of_work(&state);
            } else {
                retry(&ring, &mut state);
                ring.finish_batch(&mut state);
            }
        }
        cond_resched();
    }
}

/// The next ring that has work.
fn next(memory: usize, from: usize) -> Option<(usize, Weak<Ring>)> {
    let rings = RINGS.lock();
    let mut rest = rings.range((memory, from)..=(memory, usize::MAX));
    let found = rest.find(|(_, (tower, _))| tower.has_work());
    found.map(|(&(_, at), (_, ring))| (at, ring.clone()))
}
