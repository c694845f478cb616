//! Signals: pending queues, actions, delivery and job control.
//!
//! Senders work from any context (interrupt handlers included) and only queue, flag and wake; all that
//! happens to a task because of a signal happens in that task, on its way to user mode ([`deliver`]).
//!
//! Lock order within [`level::Signal`](crate::sync::level::Signal): job state, then the process's
//! queue, then a thread's queue, then the action table.

mod actions;
mod charge;
mod deliver;
pub mod fd;
mod frame;
mod queue;
mod restart;
mod send;
mod state;
mod stop;
pub mod wait;

pub use actions::SignalActions;
pub use charge::{Counted, queued};
pub use deliver::{dies, exit_to_user, force_fault, killed, pending};
pub use frame::sigreturn;
pub use restart::{sigsuspend, with_mask};
pub use send::{
    hand_on, send_sigchld, send_timer, send_to_group, send_to_process, send_to_task,
    terminate_threads,
};
pub use state::{ProcessSignals, TaskSignals};

use super::Task;
use abi::signal::{SigAction, SigSet, SigStack, Signal};

/// exec: handlers go back to default, the alternate stack is forgotten; mask and pending signals stay.
pub fn reset_for_exec(task: &Task) {
    task.process().signals.posix_timers.delete_all();
    task.process().signals.reset_actions();
    task.signals.reset_for_exec();
}

/// Sets the alternate stack, unchecked: sigaltstack checks.
pub fn set_altstack(signals: &TaskSignals, stack: SigStack) {
    signals.set_altstack(stack);
}

/// Replaces the mask of the running task and looks at what it lets through.
pub fn set_blocked(task: &Task, set: SigSet) -> SigSet {
    let old = task.signals.set_blocked(set);
    send::hand_on(task, set.minus(old));
    deliver::recheck(task);
    old
}

/// Replaces an action; signals that it ignores are forgotten.
pub fn set_action(task: &Task, signal: Signal, action: SigAction) -> SigAction {
    let process = task.process();
    let actions = process.signals.actions();
    let old =
        actions.set(signal, SigAction { mask: action.mask.minus(SigSet::UNBLOCKABLE), ..action });
    if action.ignores(signal) {
        let set = SigSet::of(&[signal]);
        process.signals.pending.lock().discard(set);
        process.for_each_thread(&mut |thread| thread.signals.pending.lock().discard(set));
    }
    old
}
