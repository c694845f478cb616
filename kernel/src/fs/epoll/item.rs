//! One watched file of an epoll, and the list of those that may be ready.
//!
//! An item sits in the wait queues of its file and puts itself on the ready list when woken; whether the
//! file really is ready is asked when the list is read. Wakers call in any context: nothing here sleeps,
//! allocates or drops a last reference while a queue's lock is held.

use crate::fs::PollEvents;
use crate::fs::file::{FileWatcher, OpenFile};
use crate::sync::{SpinLock, WaitQueue, Wake, level};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Report once, then be silent until MOD.
pub const ONESHOT: u32 = 1 << 30;
/// Report changes, not states.
pub const EDGE: u32 = 1 << 31;
/// Wake one of several epolls that watch the same file.
pub const EXCLUSIVE: u32 = 1 << 28;
/// Keep the machine awake: accepted, and dropped as Linux does without the capability.
pub const WAKEUP: u32 = 1 << 29;
/// Bits of `events` that are no poll events.
pub const MODES: u32 = ONESHOT | EDGE | EXCLUSIVE | WAKEUP;

/// The items that may be ready, and who waits for them.
pub struct ReadyList {
    items: SpinLock<VecDeque<Arc<Item>>, level::EpollReady>,
    pub waiters: WaitQueue,
    /// Some watched file was closed: its item is to be swept. Relaxed: a late sweep only costs memory.
    pub has_dead: AtomicBool,
}

impl ReadyList {
    pub fn new() -> Self {
        Self {
            items: SpinLock::new(VecDeque::new()),
            waiters: WaitQueue::new(),
            has_dead: AtomicBool::new(false),
        }
    }

    /// Makes sure that `live` items can be queued without allocating.
    pub fn reserve(&self, live: usize) -> Result<()> {
        self.items.lock().try_reserve(live).map_err(|_| Errno::ENOMEM)
    }

    pub fn is_empty(&self) -> bool {
        self.items.lock().is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.lock().len()
    }

    /// Takes the first item; from now on it can queue itself again.
    pub fn pop(&self) -> Option<Arc<Item>> {
        let mut items = self.items.lock();
        let item = items.pop_front()?;
        // Relaxed: `queued` changes only under the list's lock.
        item.queued.store(false, Ordering::Relaxed);
        Some(item)
    }

    /// Queues an item at the back, or in front; nothing happens if it is there already.
    pub fn push(&self, item: &Arc<Item>, in_front: bool) {
        let mut items = self.items.lock();
        // Relaxed: as in `pop`.
        if item.queued.swap(true, Ordering::Relaxed) {
            return;
        }
        if in_front {
            items.push_front(item.clone());
        } else {
            items.push_back(item.clone());
        }
    }

    /// Empties the list (it and its items refer to each other).
    pub fn clear(&self) {
        let items = core::mem::take(&mut *self.items.lock());
        drop(items);
    }
}

/// One watched file.
pub struct Item {
    me: Weak<Item>,
    pub file: Weak<OpenFile>,
    list: Arc<ReadyList>,
    // Relaxed: written under the epoll's mutex and read under it too, but for the wakers' look at `events`,
    // which may be a moment old as if the wake-up had come a moment earlier.
    events: AtomicU32,
    data: AtomicU64,
    queued: AtomicBool,
    /// The file is closed or was removed.
    dead: AtomicBool,
}

impl Item {
    pub fn new(file: &Arc<OpenFile>, list: &Arc<ReadyList>, events: u32, data: u64) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            file: Arc::downgrade(file),
            list: list.clone(),
            events: AtomicU32::new(events),
            data: AtomicU64::new(data),
            queued: AtomicBool::new(false),
            dead: AtomicBool::new(false),
        })
    }

    pub fn events(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    pub fn data(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }

    pub fn set(&self, events: u32, data: u64) {
        self.events.store(events, Ordering::Relaxed);
        self.data.store(data, Ordering::Relaxed);
    }

    /// A one-shot item has reported: only its modes stay.
    pub fn disarm(&self) {
        self.events.store(self.events() & MODES, Ordering::Relaxed);
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// What the file has that the item wants.
    pub fn ready(&self) -> PollEvents {
        if self.is_dead() {
            return PollEvents::empty();
        }
        let Some(file) = self.file.upgrade() else { return PollEvents::empty() };
        file.poll(&mut |_| {}) & PollEvents::from_bits_truncate(self.events() & !MODES)
    }

    /// Joins the file's queues; what is ready already.
    pub fn attach(self: &Arc<Self>, file: &OpenFile) -> Result<PollEvents> {
        file.watch(self.clone())?;
        let exclusive = self.events() & EXCLUSIVE != 0;
        let ready = file.poll(&mut |queue| queue.add(self.clone(), exclusive));
        Ok(ready & PollEvents::from_bits_truncate(self.events() & !MODES))
    }

    /// Leaves the file's queues for good.
    pub fn detach(self: &Arc<Self>, file: &OpenFile) {
        self.leave_queues(file);
        let me: Arc<dyn FileWatcher> = self.clone();
        file.unwatch(&me);
    }

    fn leave_queues(self: &Arc<Self>, file: &OpenFile) {
        self.dead.store(true, Ordering::Relaxed);
        let me: Arc<dyn Wake> = self.clone();
        file.poll(&mut |queue| {
            queue.remove(&me);
        });
    }

    /// Puts the item on the ready list and wakes one who waits for it.
    pub fn queue(self: &Arc<Self>) {
        self.list.push(self, false);
        self.list.waiters.wake_events(PollEvents::READABLE.bits());
    }
}

impl Wake for Item {
    fn wake(&self, events: u32) {
        let wanted = self.events() & !MODES;
        if wanted == 0 || (events != 0 && events & wanted == 0) {
            return;
        }
        // The queue that calls holds a reference, so this cannot be the last one.
        if let Some(me) = self.me.upgrade() {
            me.queue();
        }
    }
}

impl FileWatcher for Item {
    fn file_closed(&self, f: &OpenFile) {
        if let Some(me) = self.me.upgrade() {
            me.leave_queues(f);
        }
        self.list.has_dead.store(true, Ordering::Relaxed);
    }
}
