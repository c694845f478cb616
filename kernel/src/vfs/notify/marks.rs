//! Who watches what: the marks, by object.
//!
//! Owns the table of all marks. Locks: `Marks` for the table; inside it the watcher's own state
//! (`Leaf`). `InodeAttr::watched` has the events that are wanted of an object, so that an event nobody wants takes no lock.
//! A mark keeps its object alive, and is never dropped under a spinlock.
#![forbid(unsafe_code)]

use super::happened::{Event, event};
use crate::mm::fallible::{TryGrow, TryMap, try_arc};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{SpinLock, level};
use crate::vfs::object::inode::Inode;
use crate::vfs::object::types::DevId;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `IN_EXCL_UNLINK`: nothing more of files whose name is gone.
pub const EXCL_UNLINK: u32 = 1 << 26;
/// `IN_ONESHOT`: one event only.
pub const ONESHOT: u32 = 1 << 31;

/// Who gets events: an inotify instance. `charge_watch`, `uncharge_watch`, `add_watch` and `drop_watch` are called with the
/// table of marks locked: they must not call this module, sleep or wake anybody.
pub trait Watcher: Send + Sync {
    /// Counts one more watch, or fails if its user may have no more.
    fn charge_watch(&self) -> Result<()>;

    /// Counts one watch less, because it could not be made.
    fn uncharge_watch(&self);

    /// Chooses a watch descriptor, has `make` make the mark for it, and keeps that.
    fn add_watch(&self, make: &mut dyn FnMut(i32) -> Result<Arc<Mark>>) -> Result<Arc<Mark>>;

    /// Forgets a mark that has ended, and queues `IGNORED` if `tell`. Returns the mark if it was still known.
    fn drop_watch(&self, wd: i32, tell: bool) -> Option<Arc<Mark>>;

    /// Queues an event and wakes those who wait for it. Called with no spinlock held.
    fn push(&self, wd: i32, happened: Event<'_>);

    /// Wakes those who wait for events. Called with no spinlock held by this module.
    fn wake(&self);
}

/// One watcher's interest in one object.
pub struct Mark {
    _counted: Counted,
    pub wd: i32,
    pub inode: Arc<dyn Inode>,
    pub group: Weak<dyn Watcher>,
    /// Events and flags. Relaxed: changed under the table's lock; an event that misses a change came
    /// before it.
    mask: AtomicU32,
    /// Marks are numbered from 1 in the order in which they are made.
    number: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Mark {
    /// What is wanted, with the flags.
    pub fn mask(&self) -> u32 {
        self.mask.load(Ordering::Relaxed)
    }
}

/// The marks of each object, by the object's address.
type Table = BTreeMap<usize, Vec<Arc<Mark>>>;

static TABLE: SpinLock<Table, level::Marks> = SpinLock::new(BTreeMap::new());

/// Number of marks. Relaxed: an event that misses a new mark came before it.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Whether there is any mark.
#[inline(always)]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

fn key(inode: &Arc<dyn Inode>) -> usize {
    Arc::as_ptr(inode).cast::<()>().addr()
}

/// Brings `InodeAttr::watched` up to date; the table is locked.
fn refresh(inode: &dyn Inode, marks: &[Arc<Mark>]) {
    let wanted = marks.iter().fold(0, |all, mark| all | mark.mask() | event::UNMOUNT);
    inode.attr().set_watched(wanted);
}

/// Passes an event to all watchers of this object that want it.
pub fn tell(inode: &Arc<dyn Inode>, happened: Event<'_>) {
    if inode.attr().watched() & happened.mask & (event::ALL | event::UNMOUNT) == 0 {
        return;
    }
    let mut after = 0;
    // One at a time, in the order in which they were made: a list of all would need memory.
    while let Some(mark) = next_mark(inode, &mut after) {
        let wanted = mark.mask();
        if wanted & happened.mask & event::ALL == 0
            || (happened.unlinked && wanted & EXCL_UNLINK != 0)
        {
            continue;
        }
        if let Some(group) = mark.group.upgrade() {
            group.push(mark.wd, happened);
            if wanted & ONESHOT != 0 {
                remove(&mark);
            }
        }
    }
}

/// The next mark of an object after the one with the number `after`, which is set to the number of the mark found.
fn next_mark(inode: &Arc<dyn Inode>, after: &mut u64) -> Option<Arc<Mark>> {
    let table = TABLE.lock();
    let marks = table.get(&key(inode))?.iter();
    let next = marks.filter(|mark| mark.number > *after).min_by_key(|mark| mark.number)?.clone();
    *after = next.number;
    Some(next)
}

/// Finds or makes `group`'s mark on `inode`. If there is one, `change` computes its new mask from the old one; a new one
/// gets `mask`. Returns the watch descriptor.
pub fn add(
    group: &Arc<dyn Watcher>,
    inode: Arc<dyn Inode>,
    mask: u32,
    change: impl FnOnce(u32) -> Result<u32>,
) -> Result<i32> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let mut table = TABLE.lock();
    let marks = table.try_entry(key(&inode), Vec::new)?;
    let own = marks.iter().find(|mark| core::ptr::addr_eq(mark.group.as_ptr(), Arc::as_ptr(group)));
    if let Some(own) = own {
        let wd = own.wd;
        own.mask.store(change(own.mask())?, Ordering::Relaxed);
        refresh(&*inode, marks);
        return Ok(wd);
    }
    let weak = Arc::downgrade(group);
    let made = marks.try_room(1).and_then(|()| group.charge_watch()).and_then(|()| {
        let made = group.add_watch(&mut |wd| {
            try_arc(Mark {
                _counted: Counted::new(Kind::Mark),
                wd,
                inode: inode.clone(),
                group: weak.clone(),
                mask: AtomicU32::new(mask),
                // Relaxed: only order and uniqueness matter.
                number: NEXT.fetch_add(1, Ordering::Relaxed),
            })
        });
        made.inspect_err(|_| group.uncharge_watch())
    });
    let made = match made {
        Ok(made) => made,
        Err(errno) => {
            if marks.is_empty() {
                table.remove(&key(&inode));
            }
            return Err(errno);
        }
    };
    let wd = made.wd;
    marks.try_push(made)?; // there is room
    refresh(&*inode, marks);
    COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(wd)
}

/// Ends a mark and tells its watcher; false if it had ended already.
pub fn remove(mark: &Arc<Mark>) -> bool {
    detach(mark, true)
}

/// Ends a mark whose watcher is being dropped: nothing is queued.
pub fn forget(mark: &Arc<Mark>) {
    detach(mark, false);
}

fn detach(mark: &Arc<Mark>, tell: bool) -> bool {
    let mut table = TABLE.lock();
    let key = key(&mark.inode);
    let Some(marks) = table.get_mut(&key) else { return false };
    let Some(at) = marks.iter().position(|m| Arc::ptr_eq(m, mark)) else { return false };
    let removed = marks.swap_remove(at);
    refresh(&*mark.inode, marks);
    if marks.is_empty() {
        table.remove(&key);
    }
    COUNT.fetch_sub(1, Ordering::Relaxed);
    let group = removed.group.upgrade();
    let held = group.as_ref().map(|group| group.drop_watch(removed.wd, tell));
    drop(table);
    if tell && let Some(group) = &group {
        group.wake();
    }
    drop((removed, held));
    true
}

/// The object is gone: sends a last event, `mask`, and ends all its marks.
#[cold]
pub fn end(inode: &Arc<dyn Inode>, mask: u32) {
    let is_dir = if mask == event::UNMOUNT { super::happened::is_dir(inode) } else { 0 };
    tell_all(inode, mask | is_dir);
    loop {
        let first = TABLE.lock().get(&key(inode)).and_then(|marks| marks.first().cloned());
        match first {
            Some(mark) => remove(&mark),
            None => return,
        };
    }
}

/// As [`tell`], for events that need not be asked for (`UNMOUNT`).
fn tell_all(inode: &Arc<dyn Inode>, mask: u32) {
    if mask & event::UNMOUNT == 0 {
        tell(inode, Event::plain(mask));
        return;
    }
    let mut after = 0;
    while let Some(mark) = next_mark(inode, &mut after) {
        if let Some(group) = mark.group.upgrade() {
            group.push(mark.wd, Event::plain(mask));
        }
    }
}

/// All objects of a file system are gone: ends their marks in batches, within a batch the newest object first.
#[cold]
pub fn end_device(dev: DevId) {
    /// No more are held at once, because users choose how many there are.
    const BATCH: usize = 64;
    loop {
        #[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
        let mut inodes: ArrayVec<Arc<dyn Inode>, BATCH> = TABLE
            .lock()
            .values()
            .filter_map(|marks| marks.first())
            .filter(|mark| mark.inode.attr().dev() == dev)
            .take(BATCH)
            .map(|mark| mark.inode.clone())
            .collect();
        if inodes.is_empty() {
            return;
        }
        inodes.sort_by_key(|inode| core::cmp::Reverse(inode.attr().ino()));
        for inode in &inodes {
            end(inode, event::UNMOUNT);
        }
    }
}
