//! Taking signals without a handler: sigtimedwait and signalfd.

use super::{deliver, pending};
use crate::process;
use crate::process::task::task::Task;
use crate::sync::wait::{Deadline, WaitError};
use abi::signal::{SigInfo, SigSet, Signal, code};
use abi::{Errno, Result};

/// Takes a pending signal of `set` from the running task, or none.
pub fn try_take(task: &Task, set: SigSet) -> Option<SigInfo> {
    let mut info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
    deliver::dequeue(task, set.minus(SigSet::UNBLOCKABLE), &mut info).map(|_| info)
}

/// Waits until a signal of `set` is pending and takes it.
///
/// # Errors
/// `EAGAIN` when the deadline passes, `EINTR` when another signal is to be delivered.
pub fn take(set: SigSet, deadline: Option<Deadline>) -> Result<SigInfo> {
    let task = process::current();
    let set = set.minus(SigSet::UNBLOCKABLE);
    if let Some(info) = try_take(&task, set) {
        return Ok(info);
    }
    // While waiting, the signals waited for are blocked: a sender neither drops them as ignored nor has
    // them delivered, and wakes all who wait here.
    let old = task.signals.set_blocked(task.signals.blocked().union(set));
    let arrived = &task.process().signals.arrived;
    let outcome = arrived.wait_deadline(deadline, || try_take(&task, set));
    super::change::set_blocked(&task, old);
    let late = || try_take(&task, set);
    let result = match outcome {
        Ok(info) => Ok(info),
        Err(error) => late().ok_or(match error {
            WaitError::TimedOut => Errno::EAGAIN,
            WaitError::Interrupted => Errno::EINTR,
        }),
    };
    pending::recheck(&task);
    result
}
