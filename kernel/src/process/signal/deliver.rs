//! Delivery: what a task does about its signals on the way to user mode.
//!
//! Runs in the task itself with interrupts on and no lock held; may sleep, and may not return (death).

use super::charge::Charge;
use super::force::{force_sigsegv, kill};
use super::pending::{killed, recheck};
use super::queue::Pending;
use super::send::retarget;
use super::{frame, stop};
use crate::arch::entry::frame::TrapFrame;
use crate::process;
use crate::process::coredump;
use crate::process::ptrace;
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::process::timers::posix_timer;
use crate::process::tree::exit;
use abi::Errno;
use abi::signal::{
    DefaultAction, SIG_DFL, SIG_IGN, SaFlags, SigAction, SigInfo, SigSet, Signal, code,
};

/// Instruction length of `syscall` and `int 0x80`.
const SYSCALL_LEN: u64 = 2;
const NR_RESTART_SYSCALL: u64 = 219;

/// Handles every deliverable signal of the running task, then restarts or ends an interrupted call.
/// Called with interrupts on while [`crate::process::task::work::SIGNAL`] is set.
pub fn exit_to_user(frame: &mut TrapFrame) {
    let task = process::current();
    let way = task.begin_exit_to_user();
    ptrace::leave(task, frame);
    // A stop that begins later sets the flag again.
    let mut may_be_stopped = true;
    let mut info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
    loop {
        if killed(&task) {
            exit::do_group_exit(exit::Status::signalled(Signal::SIGKILL));
        }
        if core::mem::take(&mut may_be_stopped) || task.tracing.has_trap() {
            stop::park_if_stopped(task, frame);
            ptrace::trap(task, frame);
            if killed(&task) {
                continue;
            }
        }
        let open = SigSet::ALL.minus(task.signals.blocked());
        let Some(mut signal) = dequeue(&task, open, &mut info) else { break };
        if task.tracing.is_traced() {
            // Its tracer may stop it for good, give it another signal, or none.
            may_be_stopped = true;
            match ptrace::signal_stop(task, frame, signal, &mut info) {
                Some(given) => signal = given,
                None => continue,
            }
        }
        let action = take_action(&task, signal);
        match action.handler {
            SIG_IGN => {}
            SIG_DFL => {
                default_action(task, signal, &info);
                may_be_stopped = true;
            }
            _ => {
                settle_call(frame, Some(&action));
                crate::process::task::rseq::before_handler(&task, frame);
                let steps = ptrace::pause_stepping(task, frame, &way);
                let mask = task.signals.saved_mask().unwrap_or(task.signals.blocked());
                match frame::push(task, frame, signal, &info, &action, mask) {
                    Ok(()) => {
                        task.signals.forget_saved_mask();
                        block_during_handler(&task, signal, &action);
                        if steps {
                            ptrace::handler_stop(task, frame);
                        }
                    }
                    // Nothing has changed. Linux forces SIGSEGV, fatally if it was SIGSEGV's own frame.
                    Err(_) => force_sigsegv(&task, signal),
                }
            }
        }
    }
    settle_call(frame, None);
    restore_mask(task);
}

/// The mask that a call has put aside for its time, which no handler has taken.
fn restore_mask(task: Current) {
    if let Some(mask) = task.signals.saved_mask() {
        task.signals.forget_saved_mask();
        task.signals.set_blocked(mask);
        recheck(&task);
    }
}

/// Takes the most urgent signal out of `wanted`, and its details to `info`: the thread's own first, then the process's.
pub(super) fn dequeue(task: &Task, wanted: SigSet, info: &mut SigInfo) -> Option<Signal> {
    let process = task.process();
    let mut take = |pending: &Pending| {
        if pending.set().intersects(wanted) { take_from(pending, wanted, info) } else { None }
    };
    let (signal, charge) =
        take(&task.signals.pending).or_else(|| take(&process.signals.pending))?;
    // Not by the code: a program may send itself any.
    if let Some(Charge::Timer(counted)) = &charge {
        posix_timer::delivered(process, counted, info);
    }
    Some(signal)
}

/// Apart, so that the look at an empty queue is short.
#[inline(never)]
fn take_from(
    pending: &Pending,
    wanted: SigSet,
    info: &mut SigInfo,
) -> Option<(Signal, Option<Charge>)> {
    pending.lock().take_into(wanted, info)
}

/// The action, reset to default if it was for one signal only.
fn take_action(task: &Task, signal: Signal) -> SigAction {
    let signals = &task.process().signals;
    let action = signals.action(signal);
    if action.known_flags().contains(SaFlags::RESETHAND) && action.handler > SIG_IGN {
        let default = SigAction { handler: SIG_DFL, ..action };
        if signals.actions().set(signal, default).is_err() {
            kill(task);
            return default;
        }
    }
    action
}

fn block_during_handler(task: &Task, signal: Signal, action: &SigAction) {
    let mut mask = task.signals.blocked().union(action.mask);
    if !action.known_flags().contains(SaFlags::NODEFER) {
        mask.insert(signal);
    }
    let old = task.signals.set_blocked(mask);
    retarget(task, mask.minus(old));
}

fn default_action(task: Current, signal: Signal, info: &SigInfo) {
    let process = task.process();
    if process.is_init() && signal != Signal::SIGKILL && !SigSet::SYNCHRONOUS.contains(signal) {
        return;
    }
    match signal.default_action() {
        DefaultAction::Ignore | DefaultAction::Continue => {}
        DefaultAction::Stop => {
            // A terminal's stop signal has no effect where nobody could continue the process.
            if signal == Signal::SIGSTOP || !process.is_orphaned_group() {
                stop::begin(&task, signal);
            }
        }
        DefaultAction::Terminate => exit::do_group_exit(exit::Status::signalled(signal)),
        DefaultAction::CoreDump => {
            coredump::dump(task, signal, info);
            exit::do_group_exit(exit::Status::signalled(signal))
        }
    }
}

/// Turns a restart code in `rax` into `EINTR` or a second run of the call. `action` is that of the
/// handler about to run, if one is.
fn settle_call(frame: &mut TrapFrame, action: Option<&SigAction>) {
    if !frame.in_syscall() {
        return;
    }
    let Some(errno) = Errno::from_return(frame.return_value()) else { return };
    let restart = match (errno, action) {
        (Errno::ERESTARTNOINTR, _) => true,
        (Errno::ERESTARTSYS, Some(action)) => action.known_flags().contains(SaFlags::RESTART),
        (Errno::ERESTARTSYS | Errno::ERESTARTNOHAND, None) => true,
        (Errno::ERESTARTNOHAND | Errno::ERESTART_RESTARTBLOCK, Some(_)) => false,
        (Errno::ERESTART_RESTARTBLOCK, None) => {
            frame.rax = NR_RESTART_SYSCALL;
            frame.rip = frame.rip.wrapping_sub(SYSCALL_LEN);
            frame.mark_changed();
            return;
        }
        _ => return,
    };
    if restart {
        frame.rax = frame.orig_rax;
        frame.rip = frame.rip.wrapping_sub(SYSCALL_LEN);
    } else {
        frame.set_return(Errno::EINTR.to_return());
    }
    frame.mark_changed();
}
