//! [`Registration`]: a process that is to be told, once, that a message came to an empty queue for which nobody waits.
//!
//! Owns what it is told by. Never tells with the queue locked. Locks: those of who is told.

use crate::mm::AddressSpace;
use crate::net::Note;
use crate::process::signal::send_to_process;
use crate::process::{Process, Task, current};
use abi::signal::{SigInfo, Signal};
use alloc::sync::{Arc, Weak};

/// `sigev_notify`.
pub const SIGEV_SIGNAL: i32 = 0;
pub const SIGEV_NONE: i32 = 1;
pub const SIGEV_THREAD: i32 = 2;

/// How a process is told.
pub enum How {
    /// It is not, but nobody else may be.
    Nobody,
    /// By a signal (none for number 0), with a value.
    Signal(Option<Signal>, u64),
    /// By a message to a socket, which a thread of it reads, as the C library makes one.
    Socket(Note),
}

/// A process that is to be told.
pub struct Registration {
    process: Weak<Process>,
    pid: i32,
    how: How,
    /// Of the program that asked: its successor expects no signal.
    space: Weak<AddressSpace>,
}

impl Registration {
    /// The process of `task`, the running one.
    pub fn new(task: &Task, how: How) -> Self {
        let process = task.process();
        Self {
            process: Arc::downgrade(process),
            pid: process.pid(),
            how,
            space: task.mm_arc().as_ref().map_or_else(Weak::new, Arc::downgrade),
        }
    }

    /// Whether it is this process.
    pub fn is_of(&self, process: &Arc<Process>) -> bool {
        core::ptr::eq(self.process.as_ptr(), Arc::as_ptr(process))
    }

    /// There is a message, by the running process.
    pub fn tell(self) {
        match self.how {
            How::Nobody | How::Signal(None, _) => {}
            How::Signal(Some(signal), value) => {
                let Some(process) = self.process.upgrade() else { return };
                let is_same = |space: &Arc<AddressSpace>| {
                    core::ptr::eq(self.space.as_ptr(), Arc::as_ptr(space))
                };
                if !process.mm().as_ref().is_some_and(is_same) {
                    return;
                }
                let sender = current();
                let (pid, uid) = (sender.process().pid(), sender.cred().uid);
                // A queue of signals that is full loses it, as on Linux.
                let _ =
                    send_to_process(&process, signal, SigInfo::message(signal, pid, uid, value));
            }
            How::Socket(note) => note.tell(Note::WOKEN),
        }
    }

    /// It is not to be told any more.
    pub fn remove(self) {
        if let How::Socket(note) = self.how {
            note.tell(Note::REMOVED);
        }
    }

    /// What the queue's file says: how, by which signal, whom.
    pub fn shown(&self) -> (i32, i32, i32) {
        let (how, signal) = match &self.how {
            How::Nobody => (SIGEV_NONE, 0),
            How::Signal(signal, _) => (SIGEV_SIGNAL, signal.map_or(0, |signal| signal.number())),
            How::Socket(_) => (SIGEV_THREAD, 0),
        };
        (how, signal, self.pid)
    }
}
