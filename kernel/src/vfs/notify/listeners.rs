//! [`Listeners`]: the open files whose owners asked by `O_ASYNC` to be told by a signal of what happens to a pipe, a socket, a
//! terminal.
//!
//! What is listened to has one of these beside its wait queues, and tells it why after it has woken those: a look at one byte while
//! nobody listens. Owns the list, and the slot of what sends signals, which lives on a higher floor. Never tells with the list
//! locked. Locks: a mutex of all lists while one changes; `Leaf` for the list. Who tells holds no lock of an interrupt's level.

use crate::sync::{Mutex, Once, SpinLock, level};
use crate::vfs::grow;
use crate::vfs::object::file::OpenFile;
use crate::vfs::object::owner::SignalOwner;
use abi::Result;
use abi::fs::OpenFlags;
use abi::signal::code;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, Ordering};

/// What sends an owner the signal of his descriptor: why, and the bits of poll(2) that go with that.
type Send = fn(&SignalOwner, i32, u64);

static SEND: Once<Send> = Once::new();

/// Gives what sends an owner his signal.
pub fn register_send(send: Send) {
    SEND.call_once(|| send);
}

/// So many are copied out of a list at once: a list that does not change meanwhile is told whole.
const AT_ONCE: usize = 8;

/// Held while a list changes, so that what the later change found stays.
static CHANGES: Mutex<()> = Mutex::new(());

/// Why an owner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    In,
    Out,
    Error,
    HungUp,
}

impl Reason {
    /// `POLL_*`, and the bits of poll(2).
    fn told(self) -> (i32, u64) {
        match self {
            Self::In => (code::POLL_IN, 0x41),
            Self::Out => (code::POLL_OUT, 0x304),
            Self::Error => (code::POLL_ERR, 0x8),
            Self::HungUp => (code::POLL_HUP, 0x18),
        }
    }
}

struct Listener {
    /// The address of the open file, which takes this away before it ends.
    file: usize,
    owner: SignalOwner,
}

/// Who listens to one end of something.
pub struct Listeners {
    /// Whether the list has any. Relaxed: who asked before something happened has it happen after that.
    any: AtomicBool,
    /// One of them found no room, and is told when there is some. Relaxed: who finds none looks once more after he said so.
    lacks_room: AtomicBool,
    list: SpinLock<Vec<Listener>, level::Leaf>,
}

impl Listeners {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            any: AtomicBool::new(false),
            lacks_room: AtomicBool::new(false),
            list: SpinLock::new(Vec::new()),
        }
    }

    /// Whether anybody is told of anything.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// `O_ASYNC` of `file` was set or taken away through the descriptor `fd`, or its owner has changed.
    pub fn changed(&self, file: &OpenFile, fd: Option<i32>) -> Result<()> {
        let _changes = CHANGES.lock();
        let key = core::ptr::from_ref(file) as usize;
        let owner = file.signal_owner();
        let wants = file.flags().contains(OpenFlags::ASYNC);
        let mut list = self.list.lock();
        match list.iter().position(|listener| listener.file == key) {
            Some(at) if wants => list[at].owner = owner,
            Some(at) => drop(list.remove(at)),
            None if wants && fd.is_some() => {
                drop(list);
                grow::push(&self.list, Listener { file: key, owner })?;
                list = self.list.lock();
            }
            None => {}
        }
        self.any.store(!list.is_empty(), Ordering::Relaxed);
        Ok(())
    }

    /// Nobody listens any more, whatever his flags say.
    pub fn clear(&self) {
        let _changes = CHANGES.lock();
        let old = core::mem::take(&mut *self.list.lock());
        drop(old);
        self.any.store(false, Ordering::Relaxed);
    }

    /// Tells all, the one who asked last first.
    #[inline]
    pub fn tell(&self, reason: Reason) {
        if self.any() {
            self.tell_all(reason);
        }
    }

    /// There is no room: who listens is told when there is. Whether anybody does.
    #[inline]
    pub fn lack_room(&self) -> bool {
        let any = self.any();
        if any {
            self.lacks_room.store(true, Ordering::Relaxed);
        }
        any
    }

    /// There is room: tells all, once, if there was none.
    #[inline]
    pub fn tell_room(&self) {
        if self.any() && self.lacks_room.swap(false, Ordering::Relaxed) {
            self.tell_all(Reason::Out);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_all(&self, reason: Reason) {
        let Some(send) = SEND.get() else { return };
        let (why, band) = reason.told();
        let mut told = 0;
        loop {
            let mut owners = ArrayVec::<SignalOwner, AT_ONCE>::new();
            let list = self.list.lock();
            let rest = list.iter().rev().skip(told).take(AT_ONCE);
            rest.for_each(|listener| owners.push(listener.owner));
            drop(list);
            if owners.is_empty() {
                return;
            }
            told += owners.len();
            owners.iter().for_each(|owner| send(owner, why, band));
        }
    }
}

impl Default for Listeners {
    fn default() -> Self {
        Self::new()
    }
}
