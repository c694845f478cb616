//! How a task is shown: its name and its state. Owns nothing. Locks: those of the task, briefly.

use crate::process::task::task::Task;
use arrayvec::ArrayVec;

/// The letter and the word for what a task does.
pub(super) fn state(task: &Task, in_task: bool) -> (char, &'static str) {
    use crate::process::sched::State;
    let process = task.process();
    // A leader that left before its threads shows as a zombie, which cannot be waited for yet.
    let left = !in_task && !task.is_leader() && process.leader_status().is_some();
    if process.is_zombie() || left {
        return ('Z', "zombie");
    }
    if task.tracing.is_stopped() {
        return ('t', "tracing stop");
    }
    if process.signals.job().stopped.is_some() && !task.tracing.is_traced() {
        return ('T', "stopped");
    }
    match task.sched.state() {
        State::Runnable => ('R', "running"),
        State::Interruptible => ('S', "sleeping"),
        State::Uninterruptible if task.is_kernel_thread() => ('I', "idle"),
        State::Uninterruptible | State::Killable => ('D', "disk sleep"),
        State::Dead => ('X', "dead"),
    }
}

/// A thread's name as text.
pub(super) fn name(task: &Task) -> ArrayVec<u8, 16> {
    let mut name = ArrayVec::from(task.comm());
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    name
}
