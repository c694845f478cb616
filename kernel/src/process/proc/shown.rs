//! How a task is shown: its name and its state. Owns nothing. Locks: those of the task, briefly.

use crate::process::sched::State;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::tree::table;
use alloc::sync::Arc;
use arrayvec::ArrayVec;

/// The letter and the word for what a task does.
pub(super) fn state(task: &Task) -> (char, &'static str) {
    let process = task.process();
    // A leader that left before its threads cannot be waited for yet; a thread stays until its tracer has seen its end.
    let stays = || task.is_leader() || task.tracing.is_traced();
    if process.is_zombie() || (task.tracing.has_ended() && stays()) {
        return ('Z', "zombie");
    }
    if task.tracing.has_ended() {
        return ('X', "dead");
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

/// How many threads a process has: a leader that left before them, and the one of a zombie, is one.
pub(super) fn thread_count(process: &Process) -> usize {
    process.thread_count() + usize::from(process.has_leader_left())
}

/// Visits the threads that a process shows, in no order: a leader that left before them too, and of a zombie it alone.
pub(super) fn for_each_thread(process: &Process, visit: &mut dyn FnMut(&Arc<Task>)) {
    let leader = table::lookup_task(process.pid());
    let is_zombie = process.is_zombie();
    process.for_each_thread(&mut |thread| {
        if !is_zombie && !thread.is_leader() {
            visit(thread);
        }
    });
    leader.iter().for_each(visit);
}

/// A thread's name as text.
pub(super) fn name(task: &Task) -> ArrayVec<u8, 16> {
    let mut name = ArrayVec::from(task.comm());
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    name
}
