//! [`List`]: the nodes of those who wait, linked by pointers.
//!
//! Owns no memory: a node stands on a sleeper's stack or in a block of registrations, and whoever put it in takes it out
//! before it goes. Never touched without the lock around the list ([`Exclusion`]); only [`Node::is_linked`] may be asked
//! without it.

use crate::Wake;
use crate::sync::{AtomicBool, Guarded, Ordering};
use core::ptr;

/// A lock around a [`List`].
///
/// # Safety
/// `with` lends the one list that the lock was made with, to one caller at a time, and what one caller wrote the next one
/// sees.
pub unsafe trait Exclusion {
    /// The list, unlocked.
    fn new(list: List) -> Self;
    /// Runs `f` with the lock held.
    fn with<R>(&self, f: impl FnOnce(&mut List) -> R) -> R;
}

#[derive(Clone, Copy)]
struct Links {
    before: *const Node,
    after: *const Node,
}

/// One who waits.
pub(crate) struct Node {
    links: Guarded<Links>,
    /// Whether it is in a list. Written under the list's lock; false is the last thing that the list does to a node.
    linked: AtomicBool,
    exclusive: bool,
    /// Lives longer than the node is linked.
    waker: *const dyn Wake,
}

impl Node {
    /// A node that is in no list. Whoever links it sees to it that `waker` outlives the link.
    #[inline]
    pub fn new(waker: *const dyn Wake, exclusive: bool) -> Self {
        let links = Links { before: ptr::null(), after: ptr::null() };
        Self { links: Guarded::new(links), linked: AtomicBool::new(false), exclusive, waker }
    }

    /// Whether it is in a list. Without the lock a true may be old; a false is final, unless the owner links it again.
    #[inline]
    pub fn is_linked(&self) -> bool {
        // Acquire: pairs with the Release in `List::unlink`: who sees false may free the node.
        self.linked.load(Ordering::Acquire)
    }
}

/// Nodes in the order in which they came.
struct Chain {
    first: *const Node,
    last: *const Node,
}

impl Chain {
    const EMPTY: Self = Self { first: ptr::null(), last: ptr::null() };

    /// # Safety
    /// The list is locked; `node` is alive and in no list.
    unsafe fn push(&mut self, node: *const Node) {
        // SAFETY: the node is alive, and so is the last one, which is linked.
        unsafe {
            (*node).links.set(Links { before: self.last, after: ptr::null() });
            match self.last.as_ref() {
                None => self.first = node,
                Some(last) => last.links.set(Links { after: node, ..last.links.get() }),
            }
        }
        self.last = node;
    }

    /// # Safety
    /// The list is locked; `node` is alive and in this chain.
    unsafe fn unlink(&mut self, node: *const Node) {
        // SAFETY: the node is alive, and so are its neighbours, which are linked.
        unsafe {
            let Links { before, after } = (*node).links.get();
            match before.as_ref() {
                None => self.first = after,
                Some(before) => before.links.set(Links { after, ..before.links.get() }),
            }
            match after.as_ref() {
                None => self.last = before,
                Some(after) => after.links.set(Links { before, ..after.links.get() }),
            }
        }
    }
}

/// What becomes of those who were woken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A sleeper leaves the queue as it is woken.
    Leave,
    /// A registration stays.
    Stay,
}

/// All who wait in one queue in one way.
pub struct List {
    shared: Chain,
    /// Woken after the shared ones, and only as many as the waker says.
    exclusive: Chain,
    len: usize,
}

// SAFETY: the pointers lead to nodes that are used under the list's lock only, from whatever thread; their wakers are
// `Sync`.
unsafe impl Send for List {}

impl List {
    /// A list with nobody in it.
    #[inline]
    pub const fn new() -> Self {
        Self { shared: Chain::EMPTY, exclusive: Chain::EMPTY, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// # Safety
    /// `node` and its waker stay where they are until `node` is out of the list again.
    pub(crate) unsafe fn push(&mut self, node: *const Node) {
        // SAFETY: the caller's promise.
        let linked = unsafe { &(*node).linked };
        // Relaxed: under the lock.
        if linked.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the node is alive and in no list; `&mut self` shows the lock.
        unsafe { self.chain(node).push(node) };
        linked.store(true, Ordering::Relaxed);
        self.len += 1;
    }

    /// Takes a node out; false if it was out already.
    ///
    /// # Safety
    /// `node` is alive, and in no other list.
    pub(crate) unsafe fn unlink(&mut self, node: *const Node) -> bool {
        // SAFETY: the caller's promise.
        let linked = unsafe { &(*node).linked };
        // Relaxed: under the lock.
        if !linked.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: it is linked, so it is in this list; `&mut self` shows the lock.
        unsafe { self.chain(node).unlink(node) };
        self.len -= 1;
        // Release: the node is not touched any more; pairs with the Acquire in `Node::is_linked`.
        linked.store(false, Ordering::Release);
        true
    }

    /// # Safety
    /// `node` is alive.
    unsafe fn chain(&mut self, node: *const Node) -> &mut Chain {
        // SAFETY: the caller's promise; the field never changes.
        if unsafe { (*node).exclusive } { &mut self.exclusive } else { &mut self.shared }
    }

    /// Wakes every shared waiter, and exclusive ones until `most` of them have used it. How many used it in all.
    #[inline(always)]
    pub(crate) fn wake(&mut self, events: u32, most: &mut usize, woken: Woken) -> usize {
        let mut used = 0;
        let (mut at, mut exclusive) = (self.shared.first, false);
        loop {
            if at.is_null() {
                if exclusive {
                    return used;
                }
                (at, exclusive) = (self.exclusive.first, true);
                continue;
            }
            if exclusive && *most == 0 {
                return used;
            }
            // SAFETY: linked nodes and their wakers are alive, and only the lock's holder unlinks them.
            let (after, will_use) =
                unsafe { ((*at).links.get().after, (*(*at).waker).wake(events)) };
            if will_use {
                used += 1;
                *most -= usize::from(exclusive);
                if woken == Woken::Leave {
                    // SAFETY: it is alive until it is unlinked, and in this list. It may be gone right after.
                    unsafe { self.unlink(at) };
                }
            }
            at = after;
        }
    }
}

impl Default for List {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}
