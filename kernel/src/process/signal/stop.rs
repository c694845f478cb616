//! Job control: stopping and continuing a whole process.
//!
//! A stop is decided by the thread that takes the stop signal; the others see the state on their way to
//! user mode and park. The last one to park tells the parent.

use super::send::notify_parent;
use super::state::JobState;
use crate::arch::entry::frame::TrapFrame;
use crate::process::ptrace;
use crate::process::sched;
use crate::process::task::current::Current;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::Arc;

/// Stops the process of the running task because of `signal`.
pub fn begin(task: &Task, signal: Signal) {
    let process = task.process();
    {
        let mut job = process.signals.job.lock();
        if job.stopped.is_some() {
            return;
        }
        *job = JobState {
            stopped: Some(signal),
            stop_unreported: true,
            continue_unreported: false,
            still_running: process.thread_count(),
            number: job.number.wrapping_add(1).max(1),
        };
    }
    process.for_each_thread(&mut |thread| {
        thread.set_work(work::SIGNAL);
        if !thread.wake_interruptible() {
            sched::kick(thread);
        }
    });
}

/// Parks the running task while its process is stopped. Returns when it goes on or is killed. Who is traced stands for its
/// tracer instead, once: it goes on when that says so, whatever the others do.
#[inline]
pub fn park_if_stopped(task: Current, frame: &mut TrapFrame) {
    if task.process().signals.job.lock().stopped.is_some() {
        park(task, frame);
    }
}

#[cold]
fn park(task: Current, frame: &mut TrapFrame) {
    let process = task.process();
    let mut parked = false;
    while let Some((signal, is_new)) = take_part(task, process) {
        if task.tracing.is_traced() {
            if is_new || parked {
                ptrace::group_stop(task, frame, signal);
            }
            return;
        }
        parked = true;
        process.signals.continued.wait(|| {
            let runs = process.signals.job.lock().stopped.is_none();
            (runs || task.tracing.is_traced() || super::pending::killed(&task)).then_some(())
        });
        if super::pending::killed(&task) {
            return;
        }
    }
}

/// Counts the running task as stopped, if its process is to stop: by which signal, and whether this is new to the task.
fn take_part(task: Current, process: &Arc<Process>) -> Option<(Signal, bool)> {
    let (signal, is_new, is_last) = {
        let mut job = process.signals.job.lock();
        let signal = job.stopped?;
        let is_new = task.tracing.takes_part(job.number);
        let before = job.still_running;
        if is_new {
            job.still_running = before.saturating_sub(1);
        }
        (signal, is_new, before == 1 && job.still_running == 0)
    };
    // Its parent hears of it as its tracer.
    if is_last && !ptrace::is_traced_by_parent(&task) {
        report(process, code::CLD_STOPPED, signal);
    }
    Some((signal, is_new))
}

/// SIGCONT: lets a stopped process run and tells its parent.
pub fn resume(process: &Arc<Process>) {
    {
        let mut job = process.signals.job.lock();
        if job.stopped.is_none() {
            return;
        }
        *job = JobState { continue_unreported: true, number: job.number, ..JobState::default() };
    }
    process.signals.continued.wake_all();
    ptrace::continued(process);
    report(process, code::CLD_CONTINUED, Signal::SIGCONT);
}

fn report(process: &Arc<Process>, code: i32, signal: Signal) {
    if let Some(parent) = process.parent() {
        let (utime, stime) = process.cpu_times_ticks();
        let info =
            SigInfo::child(code, process.pid(), process.uid(), signal.number(), utime, stime);
        notify_parent(&parent, info);
    }
}
