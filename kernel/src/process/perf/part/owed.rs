//! [`Owed`]: what samples owe: the signal of a descriptor that has O_ASYNC, and SIGTRAP to the task that was sampled (`attr.sigtrap`).
//!
//! A sample is taken where no signal can be sent: in interrupts, and with lists locked. So what is owed is noted here, and the task that
//! runs is asked to pay. Owns the notes. Never sends anything. Locks: `Perf`, for a note.

use crate::process::task::current::{TASKS, current};
use crate::process::task::work;
use crate::sync::{SpinLock, level};
use crate::vfs::object::owner::SignalOwner;
use abi::signal::code::{POLL_HUP, POLL_IN};
use core::sync::atomic::{AtomicBool, Ordering};

/// Whom the descriptor's signal goes to, and by which number.
#[derive(Clone, Copy)]
pub(in super::super) struct Listener {
    pub owner: SignalOwner,
    pub fd: i32,
}

struct Note {
    /// There is one while the descriptor has O_ASYNC.
    listener: Option<Listener>,
    /// POLL_*, or 0 if nothing is owed.
    reason: i32,
    /// SIGTRAP is, with this address.
    trap: Option<u64>,
}

/// The part of an event.
pub(in super::super) struct Owed {
    note: SpinLock<Note, level::Perf>,
    /// Whether there is a listener. Changes with the note locked; Relaxed: who comes to listen hears of samples from then on.
    is_heard: AtomicBool,
}

impl Owed {
    pub const fn new() -> Self {
        let note = Note { listener: None, reason: 0, trap: None };
        Self { note: SpinLock::new(note), is_heard: AtomicBool::new(false) }
    }

    /// The signal goes to `owner` from now on, if it is wanted, as that of `fd`, or of the descriptor before.
    pub fn listen(&self, owner: SignalOwner, fd: Option<i32>, is_wanted: bool) {
        let mut note = self.note.lock();
        let fd = fd.or(note.listener.map(|listener| listener.fd));
        note.listener = fd.filter(|_| is_wanted).map(|fd| Listener { owner, fd });
        self.is_heard.store(note.listener.is_some(), Ordering::Relaxed);
    }

    /// The descriptor's signal is owed to whoever wants it.
    #[inline]
    pub fn owe(&self, is_last: bool) {
        if self.is_heard.load(Ordering::Relaxed) {
            self.owe_listener(is_last);
        }
    }

    #[cold]
    fn owe_listener(&self, is_last: bool) {
        let mut note = self.note.lock();
        if note.listener.is_some() {
            note.reason = note.reason.max(if is_last { POLL_HUP } else { POLL_IN });
            drop(note);
            ask();
        }
    }

    /// SIGTRAP is owed to the task for a sample. One that is owed already is not owed twice.
    pub fn owe_trap(&self, address: u64) {
        self.note.lock().trap.get_or_insert(address);
        ask();
    }

    pub fn take_signal(&self) -> Option<(Listener, i32)> {
        let mut note = self.note.lock();
        let reason = core::mem::take(&mut note.reason);
        note.listener.filter(|_| reason != 0).map(|listener| (listener, reason))
    }

    pub fn owes_signal(&self) -> bool {
        self.note.lock().reason != 0
    }

    /// The address that SIGTRAP is owed with.
    pub fn take_trap(&self) -> Option<u64> {
        self.note.lock().trap.take()
    }
}

/// The running task, if it is a program's, pays on its way there.
fn ask() {
    if TASKS.is_active() && !current().is_kernel_thread() {
        current().set_work(work::PERF);
    }
}
