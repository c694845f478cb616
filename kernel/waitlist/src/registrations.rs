//! [`Registrations`]: what poll and epoll leave in the queues of the files that they watch.
//!
//! Owns the nodes, in blocks that never move, and a share of the list that each node is in. So a registration can leave
//! its list whether or not the queue still exists, and a queue that ends has nothing to do: the list goes with its last
//! holder. All memory is found before a lock is taken; without it [`Registering::finish`] gives nothing.

use crate::Wake;
use crate::list::{Exclusion, List, Node, Woken};
use crate::queue::Queue;
use crate::sync::{AtomicUsize, Ordering, fence};
use alloc::alloc::{Layout, alloc, dealloc};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr::NonNull;

/// The registrations of one queue: held by the queue and by each registration.
pub(crate) struct Shared<L> {
    holders: AtomicUsize,
    /// Number of registrations, readable without the lock.
    len: AtomicUsize,
    list: L,
}

impl<L: Exclusion> Shared<L> {
    pub fn wake(&self, events: u32, most: &mut usize) {
        // Relaxed: ordered by the fence of the caller, `Queue::wake`.
        if self.len.load(Ordering::Relaxed) != 0 {
            self.list.with(|list| list.wake(events, most, Woken::Stay));
        }
    }

    /// Relaxed: `len` is only a hint, ordered by the fences in `watch` and `Queue::wake`.
    fn count(&self, list: &List) {
        self.len.store(list.len(), Ordering::Relaxed);
    }
}

/// A counted reference. `Arc` would do, if it could be made without a panic for want of memory.
pub(crate) struct SharedRef<L>(NonNull<Shared<L>>);

impl<L: Exclusion> SharedRef<L> {
    /// An empty list with one holder.
    pub fn new() -> Option<Self> {
        // SAFETY: the type has a size: it has counters.
        let memory = unsafe { alloc(Layout::new::<Shared<L>>()) };
        let place = NonNull::new(memory.cast::<Shared<L>>())?;
        let shared = Shared {
            holders: AtomicUsize::new(1),
            len: AtomicUsize::new(0),
            list: L::new(List::new()),
        };
        // SAFETY: fresh memory of the right layout.
        unsafe { place.write(shared) };
        Some(Self(place))
    }

    /// One more reference.
    ///
    /// # Safety
    /// The pointer comes from [`as_ptr`](Self::as_ptr), and somebody holds a reference meanwhile.
    pub unsafe fn another(raw: NonNull<Shared<L>>) -> Self {
        // SAFETY: the holder keeps it alive.
        let shared = unsafe { raw.as_ref() };
        // Relaxed: whoever counts himself in has a reference already.
        shared.holders.fetch_add(1, Ordering::Relaxed);
        Self(raw)
    }

    /// # Safety
    /// The pointer comes from [`as_ptr`](Self::as_ptr) of a reference that was forgotten, and counts once.
    pub unsafe fn from_raw(raw: NonNull<Shared<L>>) -> Self {
        Self(raw)
    }
}

impl<L> SharedRef<L> {
    pub fn as_ptr(&self) -> *mut Shared<L> {
        self.0.as_ptr()
    }

    fn get(&self) -> &Shared<L> {
        // SAFETY: a holder keeps it alive, and it is only ever shared.
        unsafe { self.0.as_ref() }
    }
}

impl<L> Drop for SharedRef<L> {
    fn drop(&mut self) {
        // Release: what this holder did comes before the end; Acquire: the last one sees what all did.
        if self.get().holders.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: nobody else holds it; it was made by `new` with this layout.
            unsafe {
                self.0.drop_in_place();
                dealloc(self.0.as_ptr().cast(), Layout::new::<Shared<L>>());
            }
        }
    }
}

/// One registration in one queue.
struct Registration<L> {
    node: Node,
    shared: SharedRef<L>,
}

/// Registrations in a block that holds as many as it was made for.
type Block<L> = Vec<Registration<L>>;

/// Most registrations of one block: as many as a page holds.
const MOST: usize = 64;

/// Registrations of one waker. Dropping them takes each out of its queue.
pub struct Registrations<L: Exclusion> {
    waker: Arc<dyn Wake>,
    exclusive: bool,
    /// How many the next block is to hold.
    next: usize,
    first: Block<L>,
    more: Vec<Block<L>>,
}

// SAFETY: the nodes are used under their lists' locks, from whatever thread; the waker and the lists may be sent.
unsafe impl<L: Exclusion + Send + Sync> Send for Registrations<L> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<L: Exclusion + Send + Sync> Sync for Registrations<L> {}

impl<L: Exclusion> Registrations<L> {
    /// A place for one more registration, which will not move.
    fn room(&mut self) -> Option<&mut Block<L>> {
        let has_room = |block: &Block<L>| block.len() < block.capacity();
        if !has_room(self.more.last().unwrap_or(&self.first)) {
            let mut block = Block::new();
            block.try_reserve_exact(self.next).ok()?;
            self.next = (2 * self.next).min(MOST);
            if self.first.capacity() == 0 {
                self.first = block;
            } else {
                self.more.try_reserve(1).ok()?;
                self.more.push(block);
            }
        }
        match self.more.is_empty() {
            true => Some(&mut self.first),
            false => self.more.last_mut(),
        }
    }

    fn add(&mut self, queue: &Queue<L>) -> Option<()> {
        let waker = Arc::as_ptr(&self.waker);
        let exclusive = self.exclusive;
        let shared = queue.share()?;
        let block = self.room()?;
        block.push(Registration { node: Node::new(waker, exclusive), shared });
        let last = block.last()?;
        let shared = last.shared.get();
        shared.list.with(|list| {
            // SAFETY: the block never grows beyond its memory, so the node does not move; `drop` takes it out before
            // block and waker go. If these registrations are forgotten, both stay for ever.
            unsafe { list.push(&last.node) };
            shared.count(list);
        });
        Some(())
    }
}

impl<L: Exclusion> Drop for Registrations<L> {
    fn drop(&mut self) {
        for registration in self.more.iter().chain([&self.first]).flatten() {
            let shared = registration.shared.get();
            shared.list.with(|list| {
                // SAFETY: the node is alive, and was linked into this list only.
                unsafe { list.unlink(&registration.node) };
                shared.count(list);
            });
        }
    }
}

/// Registrations in the making: [`finish`](Self::finish) says whether all could be made.
pub struct Registering<L: Exclusion> {
    made: Registrations<L>,
    failed: bool,
}

impl<L: Exclusion> Registering<L> {
    /// No registration yet; some `room` of them are expected. Of `exclusive` ones a wake-up reaches only one that uses it.
    pub fn new(waker: Arc<dyn Wake>, exclusive: bool, room: usize) -> Self {
        let next = room.clamp(1, MOST);
        let made = Registrations { waker, exclusive, next, first: Vec::new(), more: Vec::new() };
        Self { made, failed: false }
    }

    /// Registers with a queue. What its waiters wait for is to be looked at after this.
    pub fn watch(&mut self, queue: &Queue<L>) {
        self.failed = self.failed || self.made.add(queue).is_none();
        // SeqCst: pairs with the fence in `Queue::wake`.
        fence(Ordering::SeqCst);
    }

    /// The registrations, if there was memory for all of them; else those that were made end here.
    #[must_use]
    pub fn finish(self) -> Option<Registrations<L>> {
        (!self.failed).then_some(self.made)
    }
}
