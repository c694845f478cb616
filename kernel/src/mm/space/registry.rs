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
use alea_ranges::Numbered;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};

/// By id. In pieces of a page: up to 30,000 spaces a fork needs no two frames that lie side by side for it.
static REGISTRY: SpinLock<Numbered<Weak<AddressSpace>>, level::Leaf> =
    SpinLock::new(Numbered::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    // Relaxed: only has to be distinct.
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Adds a new space.
pub(super) fn add(space: &Arc<AddressSpace>) -> Result<()> {
    // Ids are drawn before the lock is taken: another CPU may have been faster with a greater one.
    let inserted = REGISTRY.lock().insert(space.id, Arc::downgrade(space));
    inserted.map_err(|_| Errno::ENOMEM)
}

/// Pages of the list.
pub fn kept_pages() -> u64 {
    REGISTRY.lock().rooms().map(pages_of_room::<u8>).sum()
}

/// Takes out a space that is being dropped, if it was ever added.
pub(super) fn remove(id: u64) {
    let _gone = REGISTRY.lock().remove(id);
}

/// The space with this number, while a task has it.
pub fn find(id: u64) -> Option<Arc<AddressSpace>> {
    REGISTRY.lock().get(id)?.upgrade()
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
    REGISTRY.lock().from(id).find_map(Weak::upgrade)
}
