//! Signals for what the running instruction did: they cannot be ignored or blocked away.

use super::charge::{self, Charge, Counted};
use crate::process;
use crate::process::task::task::Task;
use crate::process::task::work;
use abi::signal::{SIG_IGN, SigAction, SigInfo, Signal};

/// Raises a signal for what the running instruction did; it cannot be ignored or blocked away.
pub fn force_fault(signal: Signal, code: i32, addr: u64) {
    force(&process::current(), signal, SigInfo::fault(signal, code, addr));
}

/// Raises a signal with these details, likewise.
pub fn force(task: &Task, signal: Signal, info: SigInfo) {
    let actions = task.process().signals.actions();
    let blocked = task.signals.blocked();
    if blocked.contains(signal) || actions.get(signal).handler == SIG_IGN {
        if actions.set(signal, SigAction::default()).is_err() {
            return kill(task);
        }
        let mut open = blocked;
        open.remove(signal);
        task.signals.set_blocked(open);
    }
    let (uid, most) = charge::terms(task.process(), task, signal, &info);
    let charge = || Counted::try_new(uid, most).map(Charge::Signal);
    task.signals.pending.lock().push(signal, info, charge);
    task.set_work(work::SIGNAL);
}

/// Without memory for what the signal needs the process ends, as when it is killed for memory.
pub(super) fn kill(task: &Task) {
    let info = SigInfo::new(Signal::SIGKILL, abi::signal::code::SI_KERNEL);
    if let Err(error) = super::send_to_process(task.process(), Signal::SIGKILL, info) {
        unreachable!("SIGKILL refused: {error}");
    }
}

pub(super) fn force_sigsegv(task: &Task, failed: Signal) {
    if failed == Signal::SIGSEGV {
        let actions = task.process().signals.actions();
        if actions.set(Signal::SIGSEGV, SigAction::default()).is_err() {
            return kill(task);
        }
    }
    let info = SigInfo::new(Signal::SIGSEGV, abi::signal::code::SI_KERNEL);
    force(task, Signal::SIGSEGV, info);
}
