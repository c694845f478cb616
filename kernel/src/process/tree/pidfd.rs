//! pidfds: descriptors that mean one process or thread for ever, whatever becomes of its number.
//!
//! A pidfd owns a reference to its process, never a number that could pass to another, and a weak one to its
//! thread, so that the thread's stack goes with it. It is readable once what it means has ended. No
//! locks of its own.

use crate::fs::procfs;
use crate::mm::fallible::try_arc;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::sync::PollTable;
use crate::try_format;
use crate::vfs::anon::anonymous;
use crate::vfs::{FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::{Errno, Result};

use alloc::string::String;
use alloc::sync::{Arc, Weak};

struct PidFd {
    process: Arc<Process>,
    /// With `PIDFD_THREAD`.
    thread: Option<Thread>,
}

struct Thread {
    task: Weak<Task>,
    tid: i32,
}

impl Thread {
    /// The thread, while it has not ended: a leader not before its process, whichever thread that is by now.
    fn running(&self, process: &Process) -> Option<Arc<Task>> {
        if process.is_zombie() {
            return None;
        }
        if self.tid == process.pid() {
            let leader = super::table::lookup_task(self.tid)?;
            return core::ptr::eq(Arc::as_ptr(leader.process()), process).then_some(leader);
        }
        // By exec a thread becomes the leader, and its number is gone.
        let is_it = |task: &Arc<Task>| task.tid() == self.tid && process.has_thread(task);
        self.task.upgrade().filter(is_it)
    }
}

impl FileOps for PidFd {
    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.process.ended);
        // A leader has not ended, for whoever watches it, before the whole process has.
        if let Some(thread) = self.thread.as_ref().filter(|t| t.tid != self.process.pid()) {
            table.watch(&self.process.threads_changed);
            return match thread.running(&self.process) {
                Some(_) => PollEvents::empty(),
                None => PollEvents::READABLE | PollEvents::HUP,
            };
        }
        if self.process.is_reaped() {
            PollEvents::READABLE | PollEvents::HUP
        } else if self.process.is_zombie() {
            PollEvents::READABLE
        } else {
            PollEvents::empty()
        }
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn fdinfo(&self, _: &OpenFile) -> Result<String> {
        let pid = match &self.thread {
            Some(thread) if thread.tid != self.process.pid() => {
                thread.running(&self.process).map_or(-1, |task| task.tid())
            }
            _ if self.process.is_reaped() => -1,
            _ => self.process.pid(),
        };
        try_format!("Pid:\t{pid}\nNSpid:\t{pid}\n")
    }
}

/// A new pidfd of `process`.
pub fn new(process: &Arc<Process>, nonblock: bool) -> Result<OpenFile> {
    let ops = try_arc(PidFd { process: process.clone(), thread: None })?;
    anonymous(ops, "[pidfd]", OpenFlags::RDWR, nonblock)
}

/// A new pidfd of one thread.
pub fn new_of_thread(task: &Arc<Task>, nonblock: bool) -> Result<OpenFile> {
    let thread = Thread { task: Arc::downgrade(task), tid: task.tid() };
    let ops = try_arc(PidFd { process: task.process().clone(), thread: Some(thread) })?;
    let file = anonymous(ops, "[pidfd]", OpenFlags::RDWR, nonblock)?;
    // As Linux shows it: PIDFD_THREAD is O_EXCL.
    file.set_flags(OpenFlags::EXCL, OpenFlags::EXCL);
    Ok(file)
}

/// What a pidfd means.
pub enum Target {
    Process(Arc<Process>),
    /// One thread of it; `None` once it has ended.
    Thread(Arc<Process>, Option<Arc<Task>>),
}

/// Whom a signal through `file` is for: what a pidfd means, or the process of an open directory of /proc (`ESRCH` if it
/// is gone).
pub fn to_signal(file: &OpenFile) -> Result<Target> {
    let Some(pid) = procfs::process_of(&**file.inode()) else { return target_of(file) };
    let process = i32::try_from(pid).ok().and_then(super::table::lookup).ok_or(Errno::ESRCH)?;
    Ok(Target::Process(process))
}

/// What `file` means; `EBADF` if it is no pidfd.
pub fn target_of(file: &OpenFile) -> Result<Target> {
    let pidfd = file.ops().downcast::<PidFd>().ok_or(Errno::EBADF)?;
    let process = pidfd.process.clone();
    Ok(match &pidfd.thread {
        None => Target::Process(process),
        Some(thread) => {
            let task = thread.running(&process);
            Target::Thread(process, task)
        }
    })
}

/// The process that `file` means.
///
/// # Errors
/// `EBADF` if it is no pidfd.
pub fn process_of(file: &OpenFile) -> Result<Arc<Process>> {
    let ops = file.ops().downcast::<PidFd>();
    ops.map(|pidfd| pidfd.process.clone()).ok_or(Errno::EBADF)
}
