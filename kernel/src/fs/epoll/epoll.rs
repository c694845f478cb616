//! epoll: a set of watched files, and waiting for those that become ready.
//!
//! Owns the set. It never keeps a watched file open: the last close of a file takes it out of the set.
//!
//! Locks: one sleeping mutex per epoll guards the set and serialises `epoll_wait`; `poll` reads the ready list without it.
//! The list itself has a spinlock that wakers take (`item`); the list of epolls that watch this one has a `Leaf`. Nested
//! epolls are checked for loops under one global mutex, taken first.

use super::item::{EDGE, EXCLUSIVE, Item, MODES, ONESHOT, ReadyList, WAKEUP};
use crate::base::setting::Setting;
use crate::fs::procfs::register_setting;
use crate::mm::fallible::{TryGrow, TryMap, try_arc, try_arc_cyclic};
use crate::sync::wait::{Deadline, WaitError};
use crate::sync::{Mutex, Pace, PollTable, SpinLock, level};
use crate::vfs::anon::anonymous;
use crate::vfs::per_user::{Charge, PerUser};
use crate::vfs::{Cred, Fd, FileOps, OpenFile, PollEvents, Position, grow};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// What `epoll_ctl` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Add,
    Delete,
    Modify,
}

/// `struct epoll_event` without its packing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub events: u32,
    pub data: u64,
}

/// How deeply epolls may be nested.
const MAX_NESTING: usize = 5;
/// The most paths from one watched file through nested epolls, about as many as in Linux: each is a wake-up.
const MAX_PATHS: usize = 500;

/// Held while one epoll is added to another or removed from it.
static NESTING: Mutex<()> = Mutex::new(());

/// A file is watched once per descriptor number and open file.
type Key = (i32, usize);

/// The open file.
pub struct Epoll {
    me: Weak<Epoll>,
    items: Mutex<BTreeMap<Key, Arc<Item>>>,
    list: Arc<ReadyList>,
    /// Epolls that watch this one.
    watched_by: SpinLock<Vec<Weak<Epoll>>, level::Leaf>,
    /// The user whose limit of watches its items count against.
    uid: u32,
}

/// What a watch takes on Linux, in bytes.
const WATCH_COST: u64 = 192;

crate::setting! {
    /// How many files all epolls of a user may watch; at boot as many as take a 25th of the memory.
    static MAX_USER_WATCHES = 0, 0..=i32::MAX;
}

static WATCHES: PerUser = PerUser::new();

/// Adds the setting to /proc.
pub fn register() -> Result<()> {
    let bytes = crate::mm::frames::stats().total.saturating_mul(crate::base::PAGE_SIZE as u64) / 25;
    MAX_USER_WATCHES.set(i32::try_from(bytes / WATCH_COST).unwrap_or(i32::MAX));
    register_setting("fs/epoll/max_user_watches", &MAX_USER_WATCHES)
}

fn key_of(fd: Fd, file: &Arc<OpenFile>) -> Key {
    (fd.0, Arc::as_ptr(file) as usize)
}

/// A new epoll.
pub fn new(cred: &Arc<Cred>) -> Result<OpenFile> {
    let list = try_arc(ReadyList::new())?;
    let ops = try_arc_cyclic(|me| Epoll {
        me: me.clone(),
        items: Mutex::new(BTreeMap::new()),
        list,
        watched_by: SpinLock::new(Vec::new()),
        uid: cred.uid,
    })?;
    anonymous(ops, "[eventpoll]", OpenFlags::RDWR, false)
}

/// EPERM if a file of this kind cannot be watched.
pub fn check_target(file: &OpenFile) -> Result<()> {
    if file.is_watchable() { Ok(()) } else { Err(Errno::EPERM) }
}

impl Epoll {
    /// `epoll_ctl`.
    pub fn control(
        &self,
        change: Change,
        fd: Fd,
        file: &Arc<OpenFile>,
        event: Event,
    ) -> Result<()> {
        let target = file.downcast::<Epoll>();
        if target.is_some_and(|target| core::ptr::eq(target, self)) {
            return Err(Errno::EINVAL);
        }
        let events = event.events & !WAKEUP;
        check_exclusive(change, events, target.is_some())?;
        let event = Event { events, data: event.data };
        match (change, target) {
            (Change::Add, Some(target)) => {
                let _nesting = NESTING.lock();
                self.check_nesting(target)?;
                // The entries of epolls that were closed are removed here.
                target.watched_by.lock().retain(|by| by.strong_count() > 0);
                grow::push(&target.watched_by, self.me.clone())?;
                let added = self.add(fd, file, event);
                if added.is_err() {
                    target.forget_watcher(&self.me);
                }
                added
            }
            (Change::Add, None) => self.add(fd, file, event),
            (Change::Modify, _) => self.modify(fd, file, event),
            (Change::Delete, None) => self.delete(fd, file),
            (Change::Delete, Some(target)) => {
                let _nesting = NESTING.lock();
                self.delete(fd, file)?;
                target.forget_watcher(&self.me);
                Ok(())
            }
        }
    }

    /// One of the items with which `by` watches this one is gone.
    fn forget_watcher(&self, by: &Weak<Epoll>) {
        let mut watched_by = self.watched_by.lock();
        if let Some(at) = watched_by.iter().position(|other| Weak::ptr_eq(other, by)) {
            watched_by.swap_remove(at);
        }
    }

    fn add(&self, fd: Fd, file: &Arc<OpenFile>, event: Event) -> Result<()> {
        let mut items = self.items.lock();
        self.sweep(&mut items);
        let key = key_of(fd, file);
        if items.contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let mut charge = Charge::new(&WATCHES, self.uid);
        if charge.set(1)? > u64::from(MAX_USER_WATCHES.get().unsigned_abs()) {
            return Err(Errno::ENOSPC);
        }
        let always = (PollEvents::ERR | PollEvents::HUP).bits();
        let item = Item::new(file, &self.list, event.events | always, event.data)?;
        let ready = item.attach(file, charge)?;
        if let Err(error) = items.try_put(key, item.clone()) {
            item.detach(file);
            return Err(error);
        }
        if !ready.is_empty() {
            item.queue();
        }
        Ok(())
    }

    fn modify(&self, fd: Fd, file: &Arc<OpenFile>, event: Event) -> Result<()> {
        let items = self.items.lock();
        let item = items.get(&key_of(fd, file)).ok_or(Errno::ENOENT)?;
        if item.events() & EXCLUSIVE != 0 {
            return Err(Errno::EINVAL);
        }
        let always = (PollEvents::ERR | PollEvents::HUP).bits();
        item.set(event.events | always, event.data);
        if !item.ready().is_empty() {
            item.queue();
        }
        Ok(())
    }

    fn delete(&self, fd: Fd, file: &Arc<OpenFile>) -> Result<()> {
        let item = self.items.lock().remove(&key_of(fd, file)).ok_or(Errno::ENOENT)?;
        item.detach(file);
        Ok(())
    }

    /// Forgets items whose files are closed.
    fn sweep(&self, items: &mut BTreeMap<Key, Arc<Item>>) {
        // Relaxed: see `ReadyList::has_dead`.
        if self.list.has_dead.load(Ordering::Relaxed)
            && self.list.has_dead.swap(false, Ordering::Relaxed)
        {
            items.retain(|_, item| !item.is_dead());
        }
    }

    /// `epoll_wait`: hands up to `max` events to `emit` and returns how many there were. `emit` may fail
    /// (EFAULT): its event is kept, and the error counts only if it was the first.
    pub fn wait(
        &self,
        max: usize,
        deadline: Option<Deadline>,
        block: bool,
        emit: &mut dyn FnMut(usize, Event) -> Result<()>,
    ) -> Result<usize> {
        loop {
            let sent = self.send(max, emit)?;
            if sent > 0 || !block {
                return Ok(sent);
            }
            let ready = || (!self.list.is_empty()).then_some(());
            match self.list.waiters.wait_deadline(deadline, ready) {
                Ok(()) => {}
                Err(WaitError::TimedOut) => return Ok(0),
                Err(WaitError::Interrupted) => return Err(Errno::EINTR),
            }
        }
    }

    fn send(&self, max: usize, emit: &mut dyn FnMut(usize, Event) -> Result<()>) -> Result<usize> {
        if self.list.is_empty() {
            return Ok(0);
        }
        let mut items = self.items.lock();
        self.sweep(&mut items);
        let mut sent = 0;
        // Items that stay ready go to the back: look at each once.
        for _ in 0..self.list.len() {
            if sent == max {
                break;
            }
            let Some(item) = self.list.first() else { break };
            let stays = item.reports_states();
            let mut ready = item.ready();
            let was_ready = !ready.is_empty();
            if stays && !was_ready {
                // It is looked at again once it is off the list: a wake-up that came before found it queued and
                // left no trace.
                self.list.unqueue(&item);
                ready = item.ready();
            }
            if ready.is_empty() {
                continue;
            }
            if let Err(error) = emit(sent, Event { events: ready.bits(), data: item.data() }) {
                self.list.push_front(&item);
                return if sent > 0 { Ok(sent) } else { Err(error) };
            }
            sent += 1;
            if stays && was_ready {
                self.list.rotate(&item);
            } else if stays {
                self.list.push_back(&item);
            } else if item.events() & ONESHOT != 0 {
                item.disarm();
            }
        }
        drop(items);
        if !self.list.is_empty() {
            // Others may wait for what is left, or have looked while it was off the list.
            self.list.waiters.wake_sleepers();
        }
        Ok(sent)
    }

    /// ELOOP if `target` leads back here or the nesting gets too deep, EINVAL if one event would be reported along too
    /// many paths. The caller holds `NESTING`.
    fn check_nesting(&self, target: &Epoll) -> Result<()> {
        let (mut paths_down, mut paths_up) = (1, 1);
        let below = target.depth_below(self, 0, &mut paths_down)?;
        let above = self.depth_above(0, &mut paths_up)?;
        if below + above + 2 > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        target.depth_above(0, &mut paths_up)?;
        if paths_down * paths_up > MAX_PATHS { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// How many levels of epolls are nested below this one at most.
    fn depth_below(&self, looking_for: &Epoll, depth: usize, paths: &mut usize) -> Result<usize> {
        if core::ptr::eq(self, looking_for) || depth > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        let mut inside = Vec::new();
        for item in self.items.lock().values() {
            if let Some(file) = item.file.upgrade()
                && file.downcast::<Epoll>().is_some()
            {
                inside.try_push(file)?;
            }
        }
        let mut deepest = 0;
        for file in inside {
            if let Some(inner) = file.downcast::<Epoll>() {
                count_path(paths)?;
                deepest = deepest.max(1 + inner.depth_below(looking_for, depth + 1, paths)?);
            }
        }
        Ok(deepest)
    }

    /// In how many levels of epolls this one is nested at most.
    fn depth_above(&self, depth: usize, paths: &mut usize) -> Result<usize> {
        if depth > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        // By index, since the list is not locked between two steps: it changes only under `NESTING`, which the
        // caller holds.
        let nth = |at: usize| self.watched_by.lock().get(at).map(Weak::upgrade);
        let (mut highest, mut at) = (0, 0);
        while let Some(outer) = nth(at) {
            at += 1;
            // An epoll that was closed watches nothing.
            if let Some(epoll) = outer {
                count_path(paths)?;
                highest = highest.max(1 + epoll.depth_above(depth + 1, paths)?);
            }
        }
        Ok(highest)
    }
}

/// Counts one more path through nested epolls, which also bounds how long they are searched.
fn count_path(paths: &mut usize) -> Result<()> {
    *paths += 1;
    if *paths > MAX_PATHS { Err(Errno::EINVAL) } else { Ok(()) }
}

fn check_exclusive(change: Change, events: u32, target_is_epoll: bool) -> Result<()> {
    let allowed = PollEvents::IN | PollEvents::OUT | PollEvents::ERR | PollEvents::HUP;
    if events & EXCLUSIVE == 0 || change == Change::Delete {
        return Ok(());
    }
    let bad_bits = events & !(allowed.bits() | EDGE | EXCLUSIVE | WAKEUP) != 0;
    if change == Change::Modify || target_is_epoll || bad_bits {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

impl FileOps for Epoll {
    fn position(&self) -> Position {
        Position::None
    }

    fn lseek_nowhere(&self) -> Result<u64> {
        Ok(0)
    }

    /// Readable when a watched file is ready. Takes no sleeping lock: it also runs while its caller is
    /// about to sleep.
    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.list.waiters);
        for _ in 0..self.list.len() {
            let Some(item) = self.list.pop() else { break };
            if !item.ready().is_empty() {
                self.list.push_front(&item);
                // A waiter may have looked at the list while the item was off it.
                self.list.waiters.wake_sleepers();
                return PollEvents::READABLE;
            }
        }
        PollEvents::empty()
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        for item in core::mem::take(self.items.get_mut()).into_values().paced() {
            if let Some(file) = item.file.upgrade() {
                item.detach(&file);
            }
        }
    }
}

const _: () = assert!(MODES & 0xffff == 0, "modes and poll events do not overlap");
