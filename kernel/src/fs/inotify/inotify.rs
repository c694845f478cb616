//! inotify: an open file from which the events of its watches are read.
//!
//! Owns the queue of events and the watches by number. Locks: `Leaf`, for both; never held while
//! somebody is woken or user memory is touched.
#![forbid(unsafe_code)]

use super::limits::{self, Instance};
use crate::mm::Sink;
use crate::mm::fallible::{TryGrow, TryMap, try_arc_cyclic, try_small};
use crate::mm::user::UserPtr;
use crate::sync::{PollTable, SpinLock, WaitQueue, cond_resched, level};
use crate::try_writeln;
use crate::vfs::anon::anonymous;
use crate::vfs::notify::marks::{self, EXCL_UNLINK, Mark, ONESHOT, Watcher};
use crate::vfs::notify::{Event, Listeners, Reason, event};
use crate::vfs::object::dentry::Name;
use crate::vfs::{Abilities, Cred, FileOps, Inode, OpenFile, PollEvents, Position};
use abi::fs::NAME_MAX;
use abi::fs::OpenFlags;
use abi::tty::FIONREAD;
use abi::{Errno, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use arrayvec::ArrayVec;

/// `struct inotify_event` without the name; names are padded to multiples of it.
const HEADER: usize = 16;
const MASK_CREATE: u32 = 1 << 28;
const MASK_ADD: u32 = 1 << 29;

/// The open file.
pub struct Inotify {
    me: Weak<Inotify>,
    max_events: usize,
    /// Its place among the instances of a user, against whose limits its watches count, too.
    instance: Instance,
    state: SpinLock<State, level::Leaf>,
    readers: WaitQueue,
    listeners: Listeners,
}

struct State {
    queue: VecDeque<Queued>,
    overflowed: bool,
    watches: BTreeMap<i32, Arc<Mark>>,
    next_wd: i32,
}

/// Bytes of an event with the longest name.
const LONGEST: usize = HEADER + (NAME_MAX + 1).next_multiple_of(HEADER);

#[derive(PartialEq, Eq)]
struct Queued {
    wd: i32,
    mask: u32,
    cookie: u32,
    name: Name,
}

impl Queued {
    fn len(&self) -> usize {
        HEADER + self.padded_name()
    }

    /// A name is followed by at least one zero.
    fn padded_name(&self) -> usize {
        if self.name.is_empty() { 0 } else { (self.name.len() + 1).next_multiple_of(HEADER) }
    }

    /// Whether a second such event tells nothing new.
    fn repeats(&self, last: &Queued) -> bool {
        last.mask & event::IGNORED == 0
            && (last.wd, last.mask) == (self.wd, self.mask)
            && last.name == self.name
    }

    /// The event as a reader gets it.
    fn bytes(&self) -> ArrayVec<u8, LONGEST> {
        // `LONGEST` is the length with the longest name: it fits.
        let mut out = ArrayVec::new();
        // At most 256 bytes of name.
        let name_len = self.padded_name() as u32;
        let mut put = |bytes: &[u8]| bytes.iter().for_each(|&byte| out.push(byte));
        put(&self.wd.to_ne_bytes());
        for word in [self.mask & event::SHOWN, self.cookie, name_len] {
            put(&word.to_ne_bytes());
        }
        put(&self.name);
        while out.len() < self.len() {
            out.push(0);
        }
        out
    }
}

/// A new inotify; EMFILE if the user has too many.
pub fn new(nonblock: bool, cred: &Arc<Cred>) -> Result<OpenFile> {
    let instance = Instance::new(cred.euid)?;
    let ops = try_arc_cyclic(|me| Inotify {
        me: me.clone(),
        max_events: limits::max_queued_events(),
        instance,
        state: SpinLock::new(State {
            queue: VecDeque::new(),
            overflowed: false,
            watches: BTreeMap::new(),
            next_wd: 1,
        }),
        readers: WaitQueue::new(),
        listeners: Listeners::new(),
    })?;
    anonymous(ops, "inotify", OpenFlags::empty(), nonblock)
}

impl Inotify {
    /// `inotify_add_watch`, with a checked `request`.
    pub fn watch(&self, inode: Arc<dyn Inode>, request: u32) -> Result<i32> {
        let group: Arc<dyn Watcher> = self.me.upgrade().ok_or(Errno::EBADF)?;
        let mask = request & (event::ALL | EXCL_UNLINK | ONESHOT);
        marks::add(&group, inode, mask, |old| match request {
            _ if request & MASK_CREATE != 0 => Err(Errno::EEXIST),
            _ if request & MASK_ADD != 0 => Ok(old | mask),
            _ => Ok(mask),
        })
    }

    /// `inotify_rm_watch`.
    pub fn unwatch(&self, wd: i32) -> Result<()> {
        let mark = self.state.lock().watches.get(&wd).cloned().ok_or(Errno::EINVAL)?;
        if marks::remove(&mark) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn enqueue(&self, state: &mut State, wd: i32, happened: Event<'_>) {
        let mut mask = happened.mask;
        if mask & (event::MOVE_SELF | event::DELETE_SELF) != 0 {
            mask &= !event::ISDIR;
        }
        let full = state.queue.len() >= self.max_events || crate::mm::kernel_memory_low();
        let name = try_small(happened.name.unwrap_or_default());
        let entered = match name.map(|name| Queued { wd, mask, cookie: happened.cookie, name }) {
            Ok(queued) if state.queue.back().is_some_and(|last| queued.repeats(last)) => Ok(()),
            Ok(queued) if !full => state.queue.try_push(queued),
            _ => Err(Errno::ENOMEM),
        };
        if entered.is_err() && !state.overflowed {
            let name = Name::new();
            let lost = Queued { wd: -1, mask: event::Q_OVERFLOW, cookie: 0, name };
            // If there is no memory even for that, the next lost event tries again.
            state.overflowed = state.queue.try_push(lost).is_ok();
        }
    }

    /// Takes the first event, if it fits.
    fn take(&self, room: usize) -> Result<Option<Queued>> {
        let mut state = self.state.lock();
        let Some(first) = state.queue.front() else { return Ok(None) };
        if first.len() > room {
            return Err(Errno::EINVAL);
        }
        if first.mask & event::Q_OVERFLOW != 0 {
            state.overflowed = false;
        }
        Ok(state.queue.pop_front())
    }
}

impl Watcher for Inotify {
    /// Counts one more watch: ENOSPC if the user has too many.
    fn charge_watch(&self) -> Result<()> {
        limits::charge_watch(self.instance.uid())
    }

    /// Takes `charge_watch` back: the watch was not made.
    fn uncharge_watch(&self) {
        limits::uncharge_watch(self.instance.uid());
    }

    /// Enters a mark under the next free number; the table of marks is locked.
    fn add_watch(&self, make: &mut dyn FnMut(i32) -> Result<Arc<Mark>>) -> Result<Arc<Mark>> {
        let mut state = self.state.lock();
        let mut wd = state.next_wd;
        while state.watches.contains_key(&wd) {
            wd = wd.checked_add(1).unwrap_or(1);
        }
        state.next_wd = wd.checked_add(1).unwrap_or(1);
        let mark = make(wd)?;
        state.watches.try_put(wd, mark.clone())?;
        Ok(mark)
    }

    /// Removes a mark, which the caller drops when nothing is locked, and queues `IN_IGNORED` if `tell`.
    fn drop_watch(&self, wd: i32, tell: bool) -> Option<Arc<Mark>> {
        let mut state = self.state.lock();
        let mark = state.watches.remove(&wd);
        if tell {
            self.enqueue(&mut state, wd, Event::plain(event::IGNORED));
        }
        drop(state);
        limits::uncharge_watch(self.instance.uid());
        mark
    }

    /// Queues an event of watch `wd`, unless the watch has ended.
    fn push(&self, wd: i32, happened: Event<'_>) {
        let mut state = self.state.lock();
        if !state.watches.contains_key(&wd) {
            return;
        }
        self.enqueue(&mut state, wd, happened);
        drop(state);
        self.wake();
    }

    fn wake(&self) {
        self.readers.wake_events(PollEvents::READABLE.bits());
        self.listeners.tell(Reason::In);
    }
}

impl FileOps for Inotify {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        let mut done = 0;
        loop {
            let queued = match self.take(dst.remaining()) {
                Ok(Some(queued)) => queued,
                Ok(None) | Err(_) if done > 0 => return Ok(done),
                Ok(None) if f.nonblock() => return Err(Errno::EAGAIN),
                Ok(None) => {
                    let some = || (!self.state.lock().queue.is_empty()).then_some(());
                    self.readers.wait_interruptible(some)?;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let bytes = queued.bytes();
            if dst.put(&bytes)? < bytes.len() {
                return Err(Errno::EFAULT);
            }
            done += bytes.len();
        }
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn lseek_nowhere(&self) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.readers);
        let empty = self.state.lock().queue.is_empty();
        if empty { PollEvents::empty() } else { PollEvents::READABLE }
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        if cmd != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        let len: usize = self.state.lock().queue.iter().map(Queued::len).sum();
        UserPtr::<i32>::new(arg).write(&i32::try_from(len).unwrap_or(i32::MAX))?;
        Ok(0)
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        self.listeners.changed(f, fd)
    }

    fn release(&self, _f: &OpenFile) {
        loop {
            cond_resched();
            let first = self.state.lock().watches.first_key_value().map(|(_, mark)| mark.clone());
            match first {
                Some(mark) => marks::forget(&mark),
                None => break,
            }
        }
    }

    fn fdinfo(&self, _f: &OpenFile) -> Result<String> {
        let mut watches: Vec<Arc<Mark>> = Vec::new();
        loop {
            let state = self.state.lock();
            // Memory for all is allocated first: a failure under the lock would drop marks there.
            if watches.capacity() >= state.watches.len() {
                watches.try_extend(state.watches.values().cloned())?;
                break;
            }
            let wanted = state.watches.len();
            drop(state);
            watches.try_room(wanted)?;
        }
        let mut out = String::new();
        for mark in watches {
            let attr = mark.inode.attr();
            let (dev, wanted) = (attr.dev(), mark.mask() & event::ALL);
            // Packed as Linux packs a device number here.
            let dev = dev.major() << 20 | dev.minor();
            try_writeln!(
                out,
                "inotify wd:{:x} ino:{:x} sdev:{dev:x} mask:{wanted:x} ignored_mask:0 ",
                mark.wd,
                attr.ino(),
            )?;
        }
        Ok(out)
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS
    }
}
