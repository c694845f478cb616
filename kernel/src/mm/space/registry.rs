//! All address spaces, in order of creation: for taking a file's pages out of every mapping,
//! and for who has kept a space's number and not the space.
//!
//! A walk visits ascending ids. A space that is forked during the walk gets a greater id than all others, so
//! the walk comes to it even if its parent was not visited yet. Owns the list, of weak references:
//! a walk never keeps a space but the one that it visits. Locks: `Leaf` for the list, not held during a visit.

use super::space::AddressSpace;
use crate::mm::heap::pages_of_room;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Entries by ascending id; those of spaces that are gone are empty until the list is packed.
struct Registry {
    entries: Vec<(u64, Option<Weak<AddressSpace>>)>,
    live: usize,
}

static REGISTRY: SpinLock<Registry, level::Leaf> =
    SpinLock::new(Registry { entries: Vec::new(), live: 0 });
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    // Relaxed: only has to be distinct.
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Adds a new space.
pub(super) fn add(space: &Arc<AddressSpace>) -> Result<()> {
    let mut registry = REGISTRY.lock();
    if registry.entries.len() == registry.entries.capacity() {
        if registry.live * 2 <= registry.entries.len() {
            registry.entries.retain(|(_, space)| space.is_some());
        }
        if registry.entries.try_reserve(64).is_err() {
            return Err(Errno::ENOMEM);
        }
    }
    registry.live += 1;
    let entry = (space.id, Some(Arc::downgrade(space)));
    // Ids are drawn before the lock is taken: another CPU may have been faster with a greater one.
    let at = registry.entries.partition_point(|(id, _)| *id < space.id);
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    registry.entries.insert(at, entry);
    Ok(())
}

/// Pages of the list, which never gets shorter.
pub fn kept_pages() -> u64 {
    pages_of_room::<(u64, Option<Weak<AddressSpace>>)>(REGISTRY.lock().entries.capacity())
}

/// Takes out a space that is being dropped, if it was ever added.
pub(super) fn remove(id: u64) {
    let mut registry = REGISTRY.lock();
    let Ok(at) = registry.entries.binary_search_by_key(&id, |(id, _)| *id) else { return };
    if registry.entries[at].1.take().is_some() {
        registry.live -= 1;
    }
    while let Some((_, None)) = registry.entries.last() {
        registry.entries.pop();
    }
}

/// The space with this number, while a task has it.
pub fn find(id: u64) -> Option<Arc<AddressSpace>> {
    let registry = REGISTRY.lock();
    let at = registry.entries.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    registry.entries[at].1.as_ref()?.upgrade()
}

/// Calls `visit` for every space, newest last, including those made meanwhile.
pub(super) fn for_each(mut visit: impl FnMut(&AddressSpace)) {
    let mut from = 0;
    while let Some(space) = at_or_after(from) {
        visit(&space);
        from = space.id + 1;
    }
}

/// The oldest space whose number is no less than `id`.
pub(super) fn at_or_after(id: u64) -> Option<Arc<AddressSpace>> {
    let registry = REGISTRY.lock();
    let from = registry.entries.partition_point(|(other, _)| *other < id);
    registry.entries[from..].iter().find_map(|(_, space)| space.as_ref()?.upgrade())
}
