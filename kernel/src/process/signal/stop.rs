//! Job control: stopping and continuing a whole process.
//!
//! A stop is decided by the thread that takes the stop signal; the others see the state on their way to
//! user mode and park. The last one to park tells the parent.

use super::send::notify_parent;
use super::state::JobState;
use crate::process::sched;
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
        };
    }
    process.for_each_thread(&mut |thread| {
        thread.set_work(work::SIGNAL);
        if !thread.wake_interruptible() {
            sched::kick(thread);
        }
    });
}

/// Parks the running task while its process is stopped. Returns when it goes on or is killed.
pub fn park_if_stopped(task: &Task) {
    let process = task.process();
    let last = {
        let mut job = process.signals.job.lock();
        let Some(signal) = job.stopped else { return };
        job.still_running = job.still_running.saturating_sub(1);
        (job.still_running == 0).then_some(signal)
    };
    if let Some(signal) = last {
        report(process, code::CLD_STOPPED, signal);
    }
    process.signals.continued.wait(|| {
        let runs = process.signals.job.lock().stopped.is_none();
        (runs || super::pending::killed(task)).then_some(())
    });
}

/// SIGCONT: lets a stopped process run and tells its parent.
pub fn resume(process: &Arc<Process>) {
    {
        let mut job = process.signals.job.lock();
        if job.stopped.is_none() {
            return;
        }
        *job = JobState { continue_unreported: true, ..JobState::default() };
    }
    process.signals.continued.wake_all();
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
