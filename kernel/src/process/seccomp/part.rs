//! [`Part`]: what each task has of seccomp.
//!
//! Owns a reference to the newest filter. Never gets less, but when the task ends. Locks: `Owned`, briefly, and nothing is
//! dropped under it that may be the last of its kind.

use super::filter::Filter;
use crate::arch::task::{Calls, OwnCalls};
use crate::process::ptrace;
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::watch;
use crate::sync::{OwnerCell, OwnerRef, SpinLock, level};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, Ordering};

/// What PR_GET_SECCOMP tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    Off = 0,
    Strict = 1,
    Filter = 2,
    /// It made a call that ends it.
    Dead = 3,
}

/// A task's own part.
pub(in crate::process) struct Part {
    slot: SpinLock<Slot, level::Owned>,
    /// The newest filter as the task itself goes by it: taken over from the slot on its way to user mode.
    own: OwnerCell<Option<Arc<Filter>>>,
    /// Changes under the lock, and never back to `Off`. Relaxed: a hint that spares the lock; who sets it for another task
    /// interrupts that one.
    mode: AtomicU8,
}

struct Slot {
    newest: Option<Arc<Filter>>,
    /// The task has left: it takes no filter any more.
    left: bool,
}

impl Part {
    pub(in crate::process) const fn new() -> Self {
        Self {
            slot: SpinLock::new(Slot { newest: None, left: false }),
            own: OwnerCell::new(None),
            mode: AtomicU8::new(Mode::Off as u8),
        }
    }

    pub(in crate::process) fn mode(&self) -> Mode {
        // Relaxed: see the field.
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Off,
            1 => Mode::Strict,
            2 => Mode::Filter,
            _ => Mode::Dead,
        }
    }

    /// Whether its calls have to be looked at.
    #[inline]
    pub(in crate::process) fn is_on(&self) -> bool {
        // Relaxed: see the field.
        self.mode.load(Ordering::Relaxed) != Mode::Off as u8
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        let _slot = self.slot.lock();
        // Relaxed: see the field.
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Its newest filter.
    pub(in crate::process) fn filter(&self) -> Option<Arc<Filter>> {
        self.slot.lock().newest.clone()
    }

    /// Looks at its newest filter under the lock: briefly.
    #[inline]
    pub(super) fn look<R>(&self, look: impl FnOnce(Option<&Arc<Filter>>) -> R) -> R {
        look(self.slot.lock().newest.as_ref())
    }

    /// Gives it a filter in place of its newest one, which is an ancestor; that one comes back.
    pub(super) fn assign(&self, filter: &Arc<Filter>) -> Option<Arc<Filter>> {
        let mut slot = self.slot.lock();
        if slot.left {
            return None;
        }
        // Relaxed: see the field.
        self.mode.store(Mode::Filter as u8, Ordering::Relaxed);
        slot.newest.replace(filter.clone())
    }

    /// How many filters it has.
    pub(in crate::process) fn count(&self) -> u32 {
        self.look(|filter| filter.map_or(0, |filter| filter.depth()))
    }
}

/// What only the task itself may do.
impl Current {
    /// The filter that it goes by.
    #[inline(always)]
    pub(super) fn own_filter(self) -> OwnerRef<Option<Arc<Filter>>> {
        self.map(|task| &task.seccomp.own).borrow()
    }

    /// It ends: listeners hear that it is gone.
    #[inline]
    pub(in crate::process) fn leave_seccomp(self) {
        if self.seccomp.is_on() {
            let mut slot = self.seccomp.slot.lock();
            slot.left = true;
            let gone = slot.newest.take();
            drop(slot);
            drop(gone);
            drop(self.map(|task| &task.seccomp.own).replace(None));
        }
    }
}

impl Task {
    /// What PR_GET_SECCOMP tells of it.
    pub fn seccomp_mode(&self) -> i64 {
        self.seccomp.mode() as i64
    }

    /// A child begins with what its parent, the running task, has. For a thread, the lock of its process's tree is held.
    #[inline]
    pub(in crate::process) fn inherit_seccomp(&self, parent: &Task) {
        if parent.seccomp.is_on() {
            self.take_seccomp(parent);
        }
    }

    #[cold]
    fn take_seccomp(&self, parent: &Task) {
        let (filter, mode) = {
            let slot = parent.seccomp.slot.lock();
            (slot.newest.clone(), parent.seccomp.mode())
        };
        let gone = core::mem::replace(&mut self.seccomp.slot.lock().newest, filter);
        drop(gone);
        // Relaxed: it does not run yet; and with a filter comes what was set before it.
        let order = Ordering::Relaxed;
        self.seccomp.mode.store(mode as u8, order);
        let locked = parent.settings.no_new_privs.load(order);
        self.settings.no_new_privs.store(locked, order);
        self.set_work(work::SECCOMP);
    }
}

/// The running task has something of seccomp that it had not: from its next call on it goes by it.
pub(in crate::process) fn be_watched(task: Current) {
    task.clear_work(work::SECCOMP);
    let newest = task.seccomp.filter();
    drop(task.map(|task| &task.seccomp.own).replace(newest));
    watch::watch_for_tracer(task, ptrace::watches_calls(&task));
}

/// What the calls of the running task go through if nobody but its filters wants to see them.
pub(in crate::process) fn calls(task: Current) -> Calls {
    if !task.seccomp.is_on() {
        return Calls::Table;
    }
    own_calls(task).map_or(Calls::Watched, Calls::Own)
}

/// Whether the calls of the running task may go through a table of its filters'.
pub(in crate::process) fn has_own_calls(task: Current) -> bool {
    own_calls(task).is_some()
}

fn own_calls(task: Current) -> Option<OwnCalls> {
    let own = task.own_filter();
    let filter = own.as_ref().filter(|_| task.seccomp.mode() == Mode::Filter);
    filter.and_then(|filter| filter.calls().cloned())
}
