//! What a task tells its tracer beside signals and system calls: children, exec, its end.

use super::attach;
use super::stop::{last_stop, stop, tell};
use super::told::Stop;
use super::tracee::Tracee;
use crate::arch::entry::frame::TrapFrame;
use crate::process::signal;
use crate::process::task::current::{Current, current, current_arc};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::tree::exit::Status;
use crate::process::tree::table;
use crate::vfs::Capability;
use abi::ptrace::{Event, Options, SyscallInfo};
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What a clone means to the tracer of its parent.
pub struct Clone {
    /// What its parent tells, if that was asked for.
    event: Option<Event>,
    tracee: Option<Arc<Tracee>>,
    /// The child is traced, too.
    adopts: bool,
}

/// How a clone looks to its parent's tracer.
pub struct CloneKind {
    pub vfork: bool,
    /// CLONE_UNTRACED: nobody is told.
    pub untraced: bool,
    /// CLONE_PTRACE: the child is traced if the parent is.
    pub traced: bool,
    pub exit_signal: i32,
}

/// What the running task's clone means to its tracer.
#[inline]
pub fn clone_event(kind: &CloneKind) -> Clone {
    let task = current();
    if !task.tracing.is_traced() {
        return Clone { event: None, tracee: None, adopts: false };
    }
    let tracee = task.tracing.tracee();
    let event = match kind {
        _ if kind.untraced => None,
        _ if kind.vfork => Some(Event::Vfork),
        _ if kind.exit_signal != Signal::SIGCHLD.number() => Some(Event::Clone),
        _ => Some(Event::Fork),
    };
    let options = tracee.as_ref().map(|tracee| tracee.options());
    let wanted = |event: &Event| options.is_some_and(|options| options.contains(event.option()));
    let event = event.filter(wanted);
    Clone { event, adopts: event.is_some() || kind.traced, tracee }
}

impl Clone {
    /// Before the child is known to anybody: it is traced from its first instruction on.
    ///
    /// # Errors
    /// `ENOMEM`.
    #[inline]
    pub fn adopt(&self, child: &Arc<Task>) -> Result<()> {
        match &self.tracee {
            Some(parents) if self.adopts => attach::adopt(child, parents),
            _ => Ok(()),
        }
    }

    /// The child was not made after all.
    pub fn undo(&self, child: &Arc<Task>) {
        if self.adopts {
            attach::disown(child);
        }
    }

    /// The child runs.
    #[inline]
    pub fn tell(&self, frame: &mut TrapFrame, tid: i32) {
        if let Some(event) = self.event {
            report(current(), frame, event, tid as u64);
        }
    }

    /// The child of a vfork has its own memory, or is gone.
    #[inline]
    pub fn tell_vfork_done(&self, frame: &mut TrapFrame, tid: i32) {
        if self.tracee.is_some() {
            report_if_wanted(current(), frame, Event::VforkDone, tid as u64);
        }
    }
}

fn report(task: Current, frame: &mut TrapFrame, event: Event, message: u64) {
    if let Some(tracee) = task.tracing.tracee() {
        // A signal that the tracer gives at an event is lost, as on Linux.
        let _ended = stop(task, &tracee, frame, Stop::event(event, message, &task));
        task.tracing.set_leaves();
        task.set_work(work::SIGNAL);
    }
}

fn report_if_wanted(task: Current, frame: &mut TrapFrame, event: Event, message: u64) -> bool {
    let tracee = task.tracing.tracee();
    let wanted = tracee.is_some_and(|tracee| tracee.options().contains(event.option()));
    if wanted {
        report(task, frame, event, message);
    }
    wanted
}

/// A filter of the running task wants its tracer to look at a call: `None` if there is none that does.
#[cold]
pub fn seccomp_stop(task: Current, frame: &mut TrapFrame, data: u32) -> Option<()> {
    let tracee = task.tracing.tracee()?;
    if !tracee.options().contains(Options::SECCOMP) {
        return None;
    }
    let [a, b, c, d, e, f] = frame.syscall_args();
    let words = [frame.orig_rax, a, b, c, d, e, f];
    let mut told = Stop::event(Event::Seccomp, data.into(), &task);
    told.call = (SyscallInfo::SECCOMP, words);
    // As at every event, a signal that the tracer gives is lost.
    let _ended = stop(task, &tracee, frame, told);
    Some(())
}

/// Whether the task's tracer has taken its filters out of use, as checkpointing tools do.
pub fn suspends_seccomp(task: &Task) -> bool {
    let tracee = task.tracing.tracee();
    tracee.is_some_and(|tracee| tracee.options().contains(Options::SUSPEND_SECCOMP))
}

/// A new program is in place, by the system call `number`; `old_tid` is what the thread was before.
pub fn exec_done(frame: &mut TrapFrame, number: u64, old_tid: i32) {
    let task = current();
    if !task.tracing.is_traced() {
        return;
    }
    // A tracer sees which call it was. The way out restores all registers even so, by the work flag.
    frame.orig_rax = number;
    frame.set_return(Errno::ENOSYS.to_return());
    task.set_work(work::SIGNAL);
    if report_if_wanted(task, frame, Event::Exec, old_tid as u64) {
        return;
    }
    if task.tracing.tracee().is_some_and(|tracee| !tracee.seized) {
        let (pid, uid) = (task.process().pid(), task.cred_arc().uid);
        let info = SigInfo::sent_by(Signal::SIGTRAP, code::SI_USER, pid, uid);
        // No real-time signal: it cannot exceed a limit.
        let _sent = signal::send_to_task(&current_arc(), Signal::SIGTRAP, info);
    }
}

/// The running task is about to end.
#[inline]
pub fn exiting(task: Current, status: Status) {
    if task.tracing.is_traced() {
        tell_exiting(task, status);
    }
}

#[cold]
fn tell_exiting(task: Current, status: Status) {
    let Some(tracee) = task.tracing.tracee() else { return };
    if !tracee.options().contains(Event::Exit.option()) {
        return;
    }
    // A circle of tracers that all stand at their ends would stand for ever: who stops here lets its own go first.
    attach::tracer_ends(&task);
    if let Some(mut frame) = task.user_frame() {
        last_stop(task, &tracee, &mut frame, Stop::event(Event::Exit, status.raw().into(), &task));
    }
}

/// A thread that is not the last one has ended: whether its number is kept, because its tracer has not seen that.
#[inline]
pub fn thread_ended(task: &Task, status: Status) -> bool {
    let Some(tracee) = task.tracing.close() else { return false };
    // `wait` finds a leader with the end of its process; its tracer has the signal now, and may look for the zombie.
    if !task.is_leader() {
        let mut state = tracee.state.lock();
        if state.over {
            // Its tracer has ended meanwhile, too, and waits for nobody.
            return false;
        }
        state.ended = Some(status);
    }
    tell_end(&tracee, task, status);
    true
}

/// A process has ended: whether its leader's tracer, who is not its parent, is told first.
#[inline]
pub fn process_ended(process: &Arc<Process>) -> Told {
    let of_last = current().tracing.close();
    if process.has_traced_leader() || of_last.is_some() {
        tell_process_ended(process)
    } else {
        Told::Parent
    }
}

#[cold]
fn tell_process_ended(process: &Arc<Process>) -> Told {
    let last = current();
    if !last.is_leader() {
        // The last thread tells of itself, and then of the leader that left before it.
        if let Some(tracee) = last.tracing.tracee() {
            let status = process.exit_status();
            tracee.state.lock().ended = Some(status);
            tell_end(&tracee, &last, status);
        }
    }
    let Some(leader) = table::lookup_task(process.pid()) else { return Told::Parent };
    let Some(tracee) = leader.tracing.tracee() else { return Told::Parent };
    if is_traced_by_parent(&leader) {
        return Told::TracingParent;
    }
    tracee.state.lock().ended = Some(process.exit_status());
    Told::Tracer(tracee.tracer.process().clone())
}

/// Who hears first of the end of a process.
pub enum Told {
    /// Its parent, as ever.
    Parent,
    /// Its parent, which traces it: so it wants to wait for it, whatever it says of its children.
    TracingParent,
    /// Its tracer, and its parent when that has waited for it.
    Tracer(Arc<Process>),
}

/// Whether a thread of its parent traces the task.
pub fn is_traced_by_parent(task: &Task) -> bool {
    task.tracing.tracee().is_some_and(|tracee| {
        task.process().parent().is_some_and(|parent| Arc::ptr_eq(&parent, tracee.tracer.process()))
    })
}

/// Whether the task has a tracer that may not trace everybody: its programs gain no rights.
pub fn has_weak_tracer(task: &Task) -> bool {
    task.tracing.tracer().is_some_and(|tracer| !tracer.cred_arc().capable(Capability::SYS_PTRACE))
}

fn tell_end(tracee: &Tracee, task: &Task, status: Status) {
    let (code, number) = status.to_child_info();
    tell(task, tracee, code, number);
}
