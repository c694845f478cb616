//! What waits for a task: whether a signal ends its sleep, and whether it will die of one.
//!
//! Read without a lock: a sender flags the task after it has queued, so who looks too early is woken again.

use crate::process::task::task::Task;
use crate::process::task::work;
use abi::signal::{DefaultAction, SigSet, Signal};

/// Whether a signal waits that the running task has not blocked, or something else that it is to do on its way to user mode:
/// interruptible sleeps end.
pub fn pending(task: &Task) -> bool {
    task.has_work(work::SIGNAL) && {
        let open = SigSet::ALL.minus(task.signals.blocked());
        let process = task.process();
        task.has_work(work::LATER)
            || open.intersects(task.signals.pending())
            || open.intersects(process.signals.pending())
            || process.signals.job().stopped.is_some()
            || task.tracing.has_trap()
    }
}

/// Sets the work flag again if something is deliverable under the present mask.
pub(super) fn recheck(task: &Task) {
    let open = SigSet::ALL.minus(task.signals.blocked());
    if open.intersects(task.signals.pending()) || open.intersects(task.process().signals.pending())
    {
        task.set_work(work::SIGNAL);
    }
}

/// Whether the thread has been told to die.
pub fn killed(task: &Task) -> bool {
    task.signals.pending().contains(Signal::SIGKILL)
        || task.process().signals.pending().contains(Signal::SIGKILL)
}

/// Whether the running task will not come back to user mode: it has been told to die, or a signal waits for it that
/// ends its process by default. One that dumps core does not count, as on Linux.
#[cold]
pub fn dies(task: &Task) -> bool {
    let process = task.process();
    if killed(task) {
        return true;
    }
    let open = SigSet::ALL.minus(task.signals.blocked());
    let waiting = task.signals.pending().union(process.signals.pending());
    let mut fatal = waiting.minus(waiting.minus(open));
    if fatal.is_empty() || process.is_init() {
        return false;
    }
    let (ignored, caught) = process.signals.actions().sets();
    fatal = fatal.minus(ignored).minus(caught);
    while let Some(signal) = fatal.first() {
        if signal.default_action() == DefaultAction::Terminate {
            return true;
        }
        fatal.remove(signal);
    }
    false
}
