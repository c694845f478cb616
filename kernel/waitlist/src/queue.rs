//! [`Queue`]: those who wait for one condition; how a sleeper enters and leaves.
//!
//! Owns the list of sleepers, and shares the list of registrations with them ([`Shared`]).
//!
//! No wake-up is lost as long as the condition is read and changed under one lock, or with atomics: the waiter enters
//! before its last look at the condition, the waker changes the condition before its look at the queue, and a full fence
//! stands between the two on both sides: in [`Sleeper::enter`] and [`Registering::watch`](crate::Registering::watch), and in
//! [`Queue::wake`].

use crate::Wake;
use crate::list::{Exclusion, List, Node, Woken};
use crate::registrations::{Shared, SharedRef};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, fence};
use core::ptr;

/// Who of a queue is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Everybody,
    Sleepers,
}

/// The waiters for one condition: sleepers and registrations.
pub struct Queue<L: Exclusion> {
    /// Number of sleepers, readable without the lock.
    sleeping: AtomicUsize,
    sleepers: L,
    /// The registrations; null until the first one. Set once, and counted as one holder.
    watched: AtomicPtr<Shared<L>>,
}

impl<L: Exclusion> Queue<L> {
    /// A queue over an empty list.
    #[cfg(not(alea_loom))]
    pub const fn new(sleepers: L) -> Self {
        Self { sleeping: AtomicUsize::new(0), sleepers, watched: AtomicPtr::new(ptr::null_mut()) }
    }

    /// A queue over an empty list (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub fn new(sleepers: L) -> Self {
        Self { sleeping: AtomicUsize::new(0), sleepers, watched: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Runs `body` with a place for the calling thread, which it may enter into the queue and take out as often as it
    /// likes. The place is out of the queue when this returns.
    #[inline]
    pub fn sleeper<R>(
        &self,
        waker: &dyn Wake,
        exclusive: bool,
        body: impl FnOnce(&Sleeper<'_, L>) -> R,
    ) -> R {
        let waker: *const (dyn Wake + '_) = waker;
        // SAFETY: only the lifetime changes. `Leave` takes the node out before this function, and so the borrow of the
        // waker, ends.
        let waker =
            unsafe { core::mem::transmute::<*const (dyn Wake + '_), *const dyn Wake>(waker) };
        // It is never moved from here on: `body` gets a shared reference.
        let sleeper = Sleeper { queue: self, node: Node::new(waker, exclusive) };
        let _leave = Leave(&sleeper);
        body(&sleeper)
    }

    /// Wakes every shared waiter, and exclusive ones until `most` have used it; whether a sleeper was woken.
    #[inline]
    pub fn wake(&self, events: u32, most: usize) -> bool {
        // SeqCst: pairs with the fences where waiters enter; either the waiter sees the changed condition or this
        // sees the waiter.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        let nobody = self.sleeping.load(Ordering::Relaxed) == 0
            && self.watched.load(Ordering::Relaxed).is_null();
        !nobody && self.wake_waiters(events, most, Whom::Everybody)
    }

    /// Wakes sleepers only, as [`wake`](Self::wake): who watches the queue has been told already.
    #[inline]
    pub fn wake_sleepers(&self, events: u32, most: usize) -> bool {
        // SeqCst: as in `wake`.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        self.sleeping.load(Ordering::Relaxed) != 0
            && self.wake_waiters(events, most, Whom::Sleepers)
    }

    #[inline]
    fn wake_locked(&self, events: u32, most: &mut usize) -> bool {
        self.sleepers.with(|list| {
            let woken = list.wake(events, most, Woken::Leave);
            self.count(list);
            woken != 0
        })
    }

    #[cold]
    fn wake_waiters(&self, events: u32, mut most: usize, whom: Whom) -> bool {
        // Relaxed: ordered by the caller's fence.
        let woken =
            self.sleeping.load(Ordering::Relaxed) != 0 && self.wake_locked(events, &mut most);
        if whom == Whom::Everybody
            && let Some(shared) = self.shared()
        {
            shared.wake(events, &mut most);
        }
        woken
    }

    fn shared(&self) -> Option<&Shared<L>> {
        // Acquire: pairs with the Release in `share`.
        let shared = self.watched.load(Ordering::Acquire);
        // SAFETY: what the queue points to lives as long as the queue, one of its holders.
        unsafe { shared.as_ref() }
    }

    /// A reference to the list of registrations, which is made if there is none; `None` without memory.
    pub(crate) fn share(&self) -> Option<SharedRef<L>> {
        if let Some(known) = self.another() {
            return Some(known);
        }
        let new = SharedRef::new()?;
        // AcqRel: whoever finds the pointer sees what it leads to.
        let won = self.watched.compare_exchange(
            ptr::null_mut(),
            new.as_ptr(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if won.is_ok() {
            // The new reference is the queue's own from here on; `Drop` gives it back.
            core::mem::forget(new);
        }
        self.another()
    }

    fn another(&self) -> Option<SharedRef<L>> {
        // Acquire: as in `shared`.
        let shared = ptr::NonNull::new(self.watched.load(Ordering::Acquire))?;
        // SAFETY: the queue holds one.
        Some(unsafe { SharedRef::another(shared) })
    }

    /// Relaxed: `sleeping` is only a hint, ordered by the fences in `enter` and `wake`.
    fn count(&self, list: &List) {
        self.sleeping.store(list.len(), Ordering::Relaxed);
    }
}

impl<L: Exclusion> Drop for Queue<L> {
    /// No sleeper is left: each borrows the queue. Registrations may be: they keep their list, and leave it in their
    /// own time.
    #[inline]
    fn drop(&mut self) {
        // Acquire: as in `shared`.
        let shared = self.watched.load(Ordering::Acquire);
        if let Some(shared) = ptr::NonNull::new(shared) {
            // SAFETY: the queue's own reference, which nobody uses after this.
            drop(unsafe { SharedRef::from_raw(shared) });
        }
    }
}

/// A thread's place in a queue, on its own stack.
pub struct Sleeper<'a, L: Exclusion> {
    queue: &'a Queue<L>,
    node: Node,
}

impl<L: Exclusion> Sleeper<'_, L> {
    /// Enters the queue: from now on a wake-up finds the thread. What it waits for is to be looked at after this.
    pub fn enter(&self) {
        self.queue.sleepers.with(|list| {
            // SAFETY: the node is on the stack of `Queue::sleeper`, which takes it out before it returns.
            unsafe { list.push(&self.node) };
            self.queue.count(list);
        });
        // SeqCst: pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
    }

    /// Leaves the queue; false if a wake-up has taken the thread out of it.
    pub fn leave(&self) -> bool {
        self.node.is_linked()
            && self.queue.sleepers.with(|list| {
                // SAFETY: the node is alive, and never enters another queue.
                let was_in = unsafe { list.unlink(&self.node) };
                self.queue.count(list);
                was_in
            })
    }
}

/// Takes a sleeper out of its queue even when the thread unwinds.
struct Leave<'a, 'b, L: Exclusion>(&'a Sleeper<'b, L>);

impl<L: Exclusion> Drop for Leave<'_, '_, L> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
