//! Changes of a task's own signal state: action, mask, stack.
//!
//! Runs in the task that it is about. Locks: `Signal`, briefly; nothing is held when a handler may have to run.

use super::state::TaskSignals;
use super::{pending, send};
use crate::process::task::task::Task;
use abi::Result;
use abi::signal::{SigAction, SigSet, SigStack, Signal};

/// exec: handlers go back to default, the alternate stack is forgotten; mask and pending signals stay.
pub fn reset_for_exec(task: &Task) -> Result<()> {
    task.process().signals.posix_timers.delete_all();
    task.process().signals.reset_actions()?;
    task.signals.reset_for_exec();
    Ok(())
}

/// Sets the alternate stack, unchecked: sigaltstack checks.
pub fn set_altstack(signals: &TaskSignals, stack: SigStack) {
    signals.set_altstack(stack);
}

/// Replaces the mask of the running task and looks at what it lets through.
pub fn set_blocked(task: &Task, set: SigSet) -> SigSet {
    let old = task.signals.set_blocked(set);
    send::retarget(task, set.minus(old));
    pending::recheck(task);
    old
}

/// PTRACE_SETSIGMASK: replaces the mask of a thread that stands for its tracer. It looks at what that lets through when it
/// goes on.
pub fn set_mask_of(stopped: &Task, mask: SigSet) {
    stopped.signals.forget_saved_mask();
    stopped.signals.set_blocked(mask);
}

/// Replaces an action; signals that it ignores are forgotten.
pub fn set_action(task: &Task, signal: Signal, action: SigAction) -> Result<SigAction> {
    let process = task.process();
    let actions = process.signals.actions();
    let mut old = SigAction { mask: action.mask.minus(SigSet::UNBLOCKABLE), ..action };
    actions.swap(signal, &mut old)?;
    if action.ignores(signal) {
        let set = SigSet::of(&[signal]);
        process.signals.pending.lock().discard(set);
        process.for_each_thread(&mut |thread| thread.signals.pending.lock().discard(set));
    }
    Ok(old)
}
