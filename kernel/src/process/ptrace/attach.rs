//! The beginning and the end of tracing.
//!
//! Who is in a tracer's list says the tracer's name, and the other way round: both change under the list's lock. A thread
//! that has begun to exit does not trace anew; it may be traced until its end is told.

use super::stop;
use super::tracee::Tracee;
use crate::process::may_attach;
use crate::process::signal;
use crate::process::task::current::{current, current_arc};
use crate::process::task::task::Task;
use crate::process::tree::{exit, table};
use crate::sync::cond_resched;
use abi::ptrace::Options;
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// PTRACE_ATTACH and PTRACE_SEIZE: the running task traces `target` from now on.
///
/// # Errors
/// `EPERM` if it may not, if somebody does already, or if the target has ended, as /proc says then; `ENOMEM`.
pub fn attach(target: &Arc<Task>, seized: bool, options: Options) -> Result<()> {
    let tracer = current_arc();
    if target.is_kernel_thread() || Arc::ptr_eq(target.process(), tracer.process()) {
        return Err(Errno::EPERM);
    }
    // An exec that comes after this finds its tracer.
    let steady = may_attach(target).ok_or(Errno::EPERM)?;
    let tracee = Tracee::new(tracer, seized, options)?;
    link(target, &tracee)?;
    drop(steady);
    if !seized {
        let info = SigInfo::new(Signal::SIGSTOP, code::SI_KERNEL);
        signal::send_to_task(target, Signal::SIGSTOP, info)?;
    }
    // If its process is stopped, it stands for its tracer now.
    target.process().signals.wake_stopped();
    Ok(())
}

/// PTRACE_TRACEME: the running task is traced by its parent.
///
/// # Errors
/// `EPERM` if somebody traces it already, `ESRCH` if its parent is gone, `ENOMEM`.
pub fn trace_me() -> Result<()> {
    let task = current_arc();
    let process = task.process();
    let parent = process.parent().ok_or(Errno::ESRCH)?;
    // The thread that made this process, while it lives.
    let maker = table::lookup_task(process.maker())
        .filter(|maker| Arc::ptr_eq(maker.process(), &parent) && !maker.is_exiting());
    let tracer = maker.or_else(|| parent.any_thread()).ok_or(Errno::ESRCH)?;
    if tracer.is_kernel_thread() {
        return Err(Errno::EPERM);
    }
    let tracee = Tracee::new(tracer, false, Options::empty())?;
    link(&task, &tracee)
}

/// A child that its parent's tracer traces, too, or that asked for it (CLONE_PTRACE). It is not started yet.
///
/// # Errors
/// `ENOMEM`; a tracer that ends at this moment is no error: nobody traces the child then.
pub(super) fn adopt(child: &Arc<Task>, parents: &Tracee) -> Result<()> {
    let tracee = Tracee::new(parents.tracer.clone(), parents.seized, parents.options())?;
    match link(child, &tracee) {
        Err(Errno::EPERM) => return Ok(()),
        linked => linked?,
    }
    if tracee.seized {
        child.tracing.set_trap();
        child.set_work(crate::process::task::work::SIGNAL);
        return Ok(());
    }
    signal::stop_at_start(child);
    Ok(())
}

/// Makes a task and its tracer know each other.
fn link(target: &Arc<Task>, tracee: &Arc<Tracee>) -> Result<()> {
    tracee.tracer.process().tracees.add(target, || {
        let tell_process = || {
            if target.is_leader() {
                target.process().set_leader_tracer(Some(tracee.tracer.process()));
            }
        };
        if tracee.tracer.is_exiting() || !target.tracing.begin(tracee, tell_process) {
            return Err(Errno::EPERM);
        }
        Ok(())
    })
}

/// The end of tracing: what was between the two, if the task was traced.
fn unlink(target: &Arc<Task>) -> Option<Arc<Tracee>> {
    let tracee = target.tracing.tracee()?;
    let mut own = None;
    let gone = tracee.tracer.process().tracees.with(|list| {
        own = target.tracing.end();
        if own.is_some() && target.is_leader() {
            target.process().set_leader_tracer(None);
        }
        let at = list.iter().position(|there| Arc::ptr_eq(there, target))?;
        Some(list.swap_remove(at))
    });
    drop(gone);
    own
}

/// A child that was adopted is not made after all.
pub(super) fn disown(child: &Arc<Task>) {
    drop(unlink(child));
}

/// PTRACE_DETACH: the task goes its own way, with a signal or none.
pub(super) fn detach(target: &Arc<Task>, given: i32) {
    if let Some(tracee) = unlink(target) {
        stop::release(target, &tracee, given);
    }
}

/// The running task ends: those whom it traces are free, or die with it.
#[inline]
pub fn tracer_ends(task: &Task) {
    if !task.process().tracees.is_empty() {
        free_tracees(task);
    }
}

#[cold]
fn free_tracees(task: &Task) {
    let tracees = &task.process().tracees;
    loop {
        // There may be as many as a user may have processes.
        cond_resched();
        let is_own = |there: &Arc<Task>| {
            there.tracing.tracer().is_some_and(|tracer| core::ptr::eq(&*tracer, task))
        };
        let found = tracees.with(|list| list.iter().find(|there| is_own(there)).cloned());
        let Some(target) = found else { return };
        let Some(tracee) = unlink(&target) else { continue };
        if tracee.options().contains(Options::EXITKILL) {
            let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
            // A kill has no entry that could be refused.
            let _sent = signal::send_to_process(target.process(), Signal::SIGKILL, info);
        }
        stop::release(&target, &tracee, 0);
        if tracee.state.lock().ended.take().is_some() {
            settle(&target);
        }
    }
}

/// What has ended and was kept for its tracer goes to who else waits for it.
pub(super) fn settle(target: &Arc<Task>) {
    if target.is_leader() {
        exit::tell_parent(target.process());
    } else {
        table::remove_task(target.tid());
    }
}

/// exec by a thread that was not the leader: it is the leader now, and the `old` one is gone without a word to its tracer.
pub fn leader_replaced(old: Option<Arc<Task>>) {
    let task = current();
    if let Some(tracee) = old.and_then(|old| unlink(&old)) {
        // Its tracer may wait for it alone.
        tracee.tracer.process().children_changed.wake_all();
    }
    let tracer = task.tracing.tracer();
    task.process().set_leader_tracer(tracer.as_ref().map(|tracer| &**tracer.process()));
}
