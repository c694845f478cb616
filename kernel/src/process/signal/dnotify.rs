//! dnotify, `F_NOTIFY` of fcntl(2): a signal when something happens in a directory.
//!
//! Owns what a table of descriptors watches an open directory for. Never keeps the directory open. Locks: a mutex while a watch is
//! made or changed; `Leaf` for what it wants; neither is held while a signal is sent.
#![forbid(unsafe_code)]

use super::sigio::sigio;
use crate::mm::fallible::try_arc_cyclic;
use crate::process::task::current::current;
use crate::process::tree::table;
use crate::sync::{Mutex, SpinLock, level};
use crate::vfs::notify::Event;
use crate::vfs::notify::event;
use crate::vfs::notify::marks::{self, Mark, Watcher};
use crate::vfs::object::file::FileWatcher;
use crate::vfs::object::owner::SignalOwner;
use crate::vfs::{Fd, FdTable, FileType, OpenFile};
use abi::signal::code::POLL_MSG;
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use core::any::Any;

/// `DN_*`: what may be asked for.
mod dn {
    pub const ACCESS: u32 = 0x1;
    pub const MODIFY: u32 = 0x2;
    pub const CREATE: u32 = 0x4;
    pub const DELETE: u32 = 0x8;
    pub const RENAME: u32 = 0x10;
    pub const ATTRIB: u32 = 0x20;
    /// More than one signal.
    pub const MULTISHOT: u32 = 0x8000_0000;
}

/// `EPOLLIN | EPOLLRDNORM | EPOLLMSG`, which a signal of `POLL_MSG` tells.
const BAND: u64 = 0x441;

/// Held while a watch is made or changed: of each directory, a table has one.
static ASKING: Mutex<()> = Mutex::new(());

/// What one table of descriptors watches one open directory for.
struct Dnotify {
    me: Weak<Dnotify>,
    file: Weak<OpenFile>,
    table: usize,
    state: SpinLock<State, level::Leaf>,
}

struct State {
    /// `DN_*`. Nothing, once a watch for one signal has had it: the mark stays until the directory is closed or asked for again.
    wanted: u32,
    /// The descriptor that was asked through last, for `si_fd`.
    fd: i32,
    mark: Option<Arc<Mark>>,
}

/// The events of inotify that `wanted` stands for, renames aside.
fn events(wanted: u32) -> u32 {
    [
        (dn::ACCESS, event::ACCESS),
        (dn::MODIFY, event::MODIFY),
        (dn::CREATE, event::CREATE | event::MOVED_TO),
        (dn::DELETE, event::DELETE | event::MOVED_FROM),
        (dn::ATTRIB, event::ATTRIB),
    ]
    .iter()
    .filter(|(bit, _)| wanted & bit != 0)
    .fold(0, |all, (_, events)| all | events)
}

/// `F_NOTIFY` through the descriptor `fd` of `file` in `files`: the caller gets a signal for what `wanted` names; for nothing, it
/// gets none any more. `ENOTDIR`, `ENOMEM`.
pub fn notify(file: &Arc<OpenFile>, files: &FdTable, fd: i32, wanted: u32) -> Result<()> {
    let table = files.lock_owner();
    if wanted & !dn::MULTISHOT == 0 {
        file.closed_by(table);
        return Ok(());
    }
    if file.kind() != FileType::Dir {
        return Err(Errno::ENOTDIR);
    }
    let _asking = ASKING.lock();
    if file.signal_owner().is_nobody() {
        let id = table::reference(current().process().pid()).ok_or(Errno::ESRCH)?;
        let uids = current().cred().uids();
        file.change_signal_owner(|owner| {
            if owner.is_nobody() {
                owner.name(SignalOwner::PROCESS, id, uids);
            }
        })?;
    }
    let found = file.watcher_of(table);
    let found = found.as_deref().and_then(|found| <dyn Any>::downcast_ref::<Dnotify>(found));
    match found.and_then(|found| found.me.upgrade()) {
        Some(dnotify) => dnotify.want(file, fd, wanted)?,
        None => {
            let dnotify = try_arc_cyclic(|me| Dnotify {
                me: me.clone(),
                file: Arc::downgrade(file),
                table,
                state: SpinLock::new(State { wanted: 0, fd, mark: None }),
            })?;
            file.watch(dnotify.clone())?;
            dnotify.want(file, fd, wanted).inspect_err(|_| file.closed_by(table))?;
        }
    }
    // Another thread may have closed the descriptor meanwhile, and found no watch to end.
    if !files.get(Fd(fd)).is_ok_and(|now| Arc::ptr_eq(&now, file)) {
        file.closed_by(table);
    }
    Ok(())
}

impl Dnotify {
    fn want(&self, file: &OpenFile, fd: i32, wanted: u32) -> Result<()> {
        let all = {
            let mut state = self.state.lock();
            state.wanted |= wanted;
            state.fd = fd;
            state.wanted
        };
        let group: Arc<dyn Watcher> = self.me.upgrade().ok_or(Errno::EBADF)?;
        let moves = if all & dn::RENAME != 0 { event::MOVED_FROM } else { 0 };
        let mask = events(all) | moves;
        marks::add(&group, file.inode().clone(), mask, |old| Ok(old | mask)).map(drop)
    }
}

impl Watcher for Dnotify {
    /// There is one for each descriptor at most, and these are limited.
    fn charge_watch(&self) -> Result<()> {
        Ok(())
    }

    fn uncharge_watch(&self) {}

    fn add_watch(&self, make: &mut dyn FnMut(i32) -> Result<Arc<Mark>>) -> Result<Arc<Mark>> {
        let mark = make(0)?;
        self.state.lock().mark = Some(mark.clone());
        Ok(mark)
    }

    fn drop_watch(&self, _wd: i32, _tell: bool) -> Option<Arc<Mark>> {
        self.state.lock().mark.take()
    }

    fn push(&self, _wd: i32, happened: Event<'_>) {
        let Some(file) = self.file.upgrade() else { return };
        let (signals, fd) = {
            let mut state = self.state.lock();
            let renamed = state.wanted & dn::RENAME != 0 && happened.mask & event::WITHIN != 0;
            let other = happened.mask & events(state.wanted) != 0;
            let mut signals = u32::from(renamed) + u32::from(other);
            if signals > 0 && state.wanted & dn::MULTISHOT == 0 {
                state.wanted = 0;
                signals = 1;
            }
            (signals, state.fd)
        };
        for _ in 0..signals.min(2) {
            sigio(&file, fd, POLL_MSG, BAND);
        }
    }

    fn wake(&self) {}
}

impl FileWatcher for Dnotify {
    fn file_closed(&self, _f: &OpenFile) {
        let mark = self.state.lock().mark.take();
        if let Some(mark) = mark {
            marks::forget(&mark);
        }
    }

    fn table(&self) -> Option<usize> {
        Some(self.table)
    }
}
