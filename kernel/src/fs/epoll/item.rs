//! One watched file of an epoll, and the list of those that may be ready.
//!
//! An [`Item`] owns its registrations in the wait queues of its file. These wake its [`Bell`], which puts the item's [`Place`] on
//! the ready list; whether the file really is ready is asked when the list is read. The bell is freed, and its place with
//! it, once item and registrations are gone, so a bell that is woken has a place.
//!
//! Wakers call in any context: a bell never sleeps, allocates or drops anything. Locks: `EpollReady` around the list,
//! `Leaf` around an item's registrations, which are dropped with no spinlock held.

use crate::mm::fallible::try_arc;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{BY_RING, PollTable, Registrations, SpinLock, WaitQueue, Wake, level};
use crate::vfs::object::file::FileWatcher;
use crate::vfs::per_user::Charge;
use crate::vfs::{OpenFile, PollEvents};
use abi::{Errno, Result};
use alea_waitlist::{Ready, Room};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// `EPOLLONESHOT`: report once, then nothing until `EPOLL_CTL_MOD`.
pub const ONESHOT: u32 = 1 << 30;
/// `EPOLLET`, edge-triggered: report changes. Without it an item is level-triggered and reports states.
pub const EDGE: u32 = 1 << 31;
/// `EPOLLEXCLUSIVE`: wake one of several epolls that watch the same file.
pub const EXCLUSIVE: u32 = 1 << 28;
/// `EPOLLWAKEUP`, keep the machine awake: accepted and ignored, as on Linux without the capability.
pub const WAKEUP: u32 = 1 << 29;
/// Bits of `events` that are no poll events.
pub const MODES: u32 = ONESHOT | EDGE | EXCLUSIVE | WAKEUP;

/// The items that may be ready, and who waits for them.
pub struct ReadyList {
    items: SpinLock<Ready<Weak<Item>>, level::EpollReady>,
    /// How many are on the list. Relaxed: written under the lock; a reader without it is ordered by the full
    /// fence with which it entered `waiters`, a writer by that of the wake-up.
    len: AtomicUsize,
    pub waiters: WaitQueue,
    /// Some watched file was closed: its item is to be swept. Relaxed: a late sweep only costs memory.
    pub has_dead: AtomicBool,
}

impl ReadyList {
    pub fn new() -> Self {
        Self {
            items: SpinLock::new(Ready::new()),
            len: AtomicUsize::new(0),
            waiters: WaitQueue::new(),
            has_dead: AtomicBool::new(false),
        }
    }

    /// A place for one more item. Memory for it is allocated with no spinlock held.
    fn claim(&self) -> Result<u32> {
        loop {
            let wanted = self.items.lock().wants_room();
            let mut room = match wanted {
                Some(blocks) => Some(Room::new(blocks).ok_or(Errno::ENOMEM)?),
                None => None,
            };
            // Another thread may have taken the free place: then look again.
            let claimed = self.items.lock().claim(Weak::new(), &mut room);
            if let Some(place) = claimed {
                return Ok(place);
            }
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Changes the list.
    #[inline]
    fn change<R>(&self, f: impl FnOnce(&mut Ready<Weak<Item>>) -> R) -> R {
        let mut items = self.items.lock();
        let result = f(&mut items);
        self.len.store(items.len(), Ordering::Relaxed);
        result
    }

    /// The first item. An edge-triggered or one-shot item is taken off the list, so that a wake-up from now on queues it
    /// again; a level-triggered one stays where it is.
    pub fn first(&self) -> Option<Arc<Item>> {
        loop {
            let mut items = self.items.lock();
            let first = items.peek(|_, item| item.upgrade())?;
            if !first.as_ref().is_some_and(|item| item.reports_states()) {
                items.pop(|_, _| ());
                self.len.store(items.len(), Ordering::Relaxed);
            }
            drop(items);
            // An item that is just being dropped is not ready.
            if first.is_some() {
                return first;
            }
        }
    }

    /// Takes the first item off the list; a wake-up from now on queues it again.
    pub fn pop(&self) -> Option<Arc<Item>> {
        loop {
            let first = self.change(|items| items.pop(|_, item| item.upgrade()));
            // An item that is just being dropped is not ready.
            if let Some(item) = first? {
                return Some(item);
            }
        }
    }

    /// Queues an item in front; nothing happens if it is queued already.
    pub fn push_front(&self, item: &Item) {
        self.change(|items| items.push_front(item.bell.place.at));
    }

    /// Queues an item at the back; nothing happens if it is queued already.
    pub fn push_back(&self, item: &Item) {
        self.change(|items| items.push_back(item.bell.place.at));
    }

    /// Moves a queued item behind all others, if there are any.
    #[inline]
    pub fn rotate(&self, item: &Item) {
        if self.len() > 1 {
            self.change(|items| items.rotate(item.bell.place.at));
        }
    }

    /// Takes an item off the list.
    pub fn unqueue(&self, item: &Item) {
        self.change(|items| items.unqueue(item.bell.place.at));
    }
}

/// A claimed place of a list, given back when this is dropped.
struct Place {
    list: Arc<ReadyList>,
    at: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        let item = self.list.change(|items| items.release(self.at));
        drop(item);
    }
}

/// What the queues of a file wake: an item's place on the ready list. The item and its registrations hold it.
struct Bell {
    _counted: Counted,
    place: Place,
    // Relaxed: written under the epoll's mutex and mostly read under it. Wakers and `poll` read without it: what they see
    // may be a moment old, as if they had come a moment earlier.
    events: AtomicU32,
}

impl Bell {
    fn events(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    /// Puts the item on the ready list and wakes a waiter, with what else is said of the wake-up. Returns whether a thread that sleeps
    /// in the epoll was woken.
    fn ring(&self, more: u32) -> bool {
        let list = &self.place.list;
        list.change(|items| items.push_back(self.place.at));
        list.waiters.wake_events(PollEvents::READABLE.bits() | more)
    }
}

impl Wake for Bell {
    /// An exclusive wake-up is used by an epoll in which somebody sleeps, for a direction that it wants, as on Linux: one
    /// for both directions goes on to the next epoll too.
    fn wake(&self, events: u32) -> bool {
        let wanted = self.events() & !MODES;
        if wanted == 0 || (events != 0 && events & wanted == 0) {
            return false;
        }
        let told = self.ring(events & BY_RING);
        let both = PollEvents::IN | PollEvents::OUT;
        let of_interest = match PollEvents::from_bits_truncate(events) & both {
            PollEvents::IN => wanted & PollEvents::IN.bits() != 0,
            PollEvents::OUT => wanted & PollEvents::OUT.bits() != 0,
            neither => neither.is_empty(),
        };
        told && of_interest
    }
}

/// One watched file.
pub struct Item {
    pub file: Weak<OpenFile>,
    bell: Arc<Bell>,
    /// Relaxed: as `Bell::events`.
    data: AtomicU64,
    /// The file was closed, or the item was removed. Relaxed: written once; a reader that misses it polls a file
    /// that is being closed.
    dead: AtomicBool,
    held: SpinLock<Option<Held>, level::Leaf>,
}

/// What an item holds for as long as it watches its file.
struct Held {
    _registrations: Option<Registrations>,
    _charge: Charge,
}

impl Item {
    pub fn new(
        file: &Arc<OpenFile>,
        list: &Arc<ReadyList>,
        events: u32,
        data: u64,
    ) -> Result<Arc<Self>> {
        let place = Place { at: list.claim()?, list: list.clone() };
        let bell = try_arc(Bell {
            _counted: Counted::new(Kind::EpollItem),
            place,
            events: AtomicU32::new(events),
        })?;
        let item = try_arc(Self {
            file: Arc::downgrade(file),
            bell,
            data: AtomicU64::new(data),
            dead: AtomicBool::new(false),
            held: SpinLock::new(None),
        })?;
        let at = item.bell.place.at;
        list.items.lock().put(at, Arc::downgrade(&item));
        Ok(item)
    }

    pub fn events(&self) -> u32 {
        self.bell.events()
    }

    /// Whether it is level-triggered, and so stays on the list while its file is ready.
    #[inline]
    pub fn reports_states(&self) -> bool {
        self.events() & (EDGE | ONESHOT) == 0
    }

    pub fn data(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }

    pub fn set(&self, events: u32, data: u64) {
        self.bell.events.store(events, Ordering::Relaxed);
        self.data.store(data, Ordering::Relaxed);
    }

    /// A one-shot item has reported: only its modes stay.
    pub fn disarm(&self) {
        self.bell.events.store(self.events() & MODES, Ordering::Relaxed);
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
        self.wanted(file.poll(&mut PollTable::look()))
    }

    fn wanted(&self, found: PollEvents) -> PollEvents {
        found & PollEvents::from_bits_truncate(self.events() & !MODES)
    }

    /// Joins the file's wait queues and keeps the user's charge. Returns what is ready already.
    pub fn attach(self: &Arc<Self>, file: &OpenFile, charge: Charge) -> Result<PollEvents> {
        let exclusive = self.events() & EXCLUSIVE != 0;
        let mut table = PollTable::register(self.bell.clone(), exclusive, 2);
        let found = file.poll(&mut table);
        let registrations = table.finish()?;
        file.watch(self.clone())?;
        *self.held.lock() = Some(Held { _registrations: registrations, _charge: charge });
        Ok(self.wanted(found))
    }

    /// Leaves the file's wait queues and the ready list for good.
    pub fn detach(self: &Arc<Self>, file: &OpenFile) {
        self.leave();
        let me: Arc<dyn FileWatcher> = self.clone();
        file.unwatch(&me);
    }

    fn leave(&self) {
        self.dead.store(true, Ordering::Relaxed);
        let held = self.held.lock().take();
        drop(held);
        self.bell.place.list.unqueue(self);
    }

    /// Puts the item on the ready list and wakes a waiter.
    pub fn queue(&self) {
        self.bell.ring(0);
    }
}

impl FileWatcher for Item {
    fn file_closed(&self, _f: &OpenFile) {
        self.leave();
        self.bell.place.list.has_dead.store(true, Ordering::Relaxed);
    }
}
