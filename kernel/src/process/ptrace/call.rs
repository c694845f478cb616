//! A system call of a task whose calls are watched: the stops around it, and what its filters say.
//!
//! Called in place of the table's entry, with interrupts on. A task is watched from the moment on at which its tracer wants
//! to stop it at calls, or to step it over one, and for good once it has a filter.

use super::order::Mode;
use super::stop::{be_free, stop};
use super::told::Stop;
use crate::arch::entry::frame::{FLAG_TF, SYSCALLS, SyscallTable, TrapFrame};
use crate::process::task::current::{Current, current, current_arc};
use crate::process::task::task::Task;
use crate::process::{seccomp, signal};
use abi::Errno;
use abi::ptrace::{Options, SyscallInfo};
use abi::signal::{SigInfo, Signal, code};

/// No call: what a tracer sets the number to in order to prevent one.
const NO_CALL: u32 = u32::MAX;

/// A system call of a task that is watched, which is one of `calls`: what it returns.
pub fn watched(frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    let task = current();
    if !task.tracing.is_traced() {
        if task.tracing.mode() != Mode::Run || !task.seccomp.is_on() {
            be_free(task);
        }
        return if seccomp::may_be_made(task, frame) {
            call(frame, calls)
        } else {
            frame.return_value()
        };
    }
    let mode = task.tracing.mode();
    frame.set_return(Errno::ENOSYS.to_return());
    if mode.stops_at_entry() {
        entry(task, frame);
    }
    // A number that the tracer has set to nothing, or that was emulated, or whose caller was killed meanwhile. Nothing is
    // held: the call may be the last one.
    // Filters come after the tracer, and judge what it has made of the call, be it nothing.
    let is_made = !mode.emulates()
        && !signal::killed(&task)
        && seccomp::may_be_made(task, frame)
        && frame.orig_rax as u32 != NO_CALL;
    let result = if is_made { call(frame, calls) } else { frame.return_value() };
    frame.set_return(result);
    // An event of this call is nothing more than the call.
    let _event = task.tracing.takes_leaves();
    at_end(task, frame);
    frame.return_value()
}

/// What the tracer wants at the end of a call.
fn at_end(task: Current, frame: &mut TrapFrame) {
    match task.tracing.mode() {
        Mode::Call => exit(task, frame),
        mode if mode.steps() => {
            frame.rflags &= !FLAG_TF;
            signal::force_fault(Signal::SIGTRAP, code::TRAP_BRKPT, frame.rip);
        }
        _ => {}
    }
}

/// On the way out of a call that was not watched when it began: its tracer has asked for its end at an event in it.
#[inline]
pub fn leave(task: Current, frame: &mut TrapFrame) {
    if task.tracing.takes_leaves() && task.tracing.is_traced() {
        at_end(task, frame);
    }
}

/// Whether the tracer of the running task wants to see its calls.
pub fn watches_calls(task: &Task) -> bool {
    task.tracing.is_traced() && task.tracing.mode().watches_calls()
}

/// Makes the call that the registers ask for.
fn call(frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    // As at the entry: the low half, and the last entry for what is too great.
    let number = (frame.orig_rax as u32 as usize).min(SYSCALLS - 1);
    calls[number](frame)
}

fn entry(task: Current, frame: &mut TrapFrame) {
    let [a, b, c, d, e, f] = frame.syscall_args();
    let words = [frame.orig_rax, a, b, c, d, e, f];
    report(task, frame, SyscallInfo::ENTRY, words);
}

fn exit(task: Current, frame: &mut TrapFrame) {
    let result = frame.return_value();
    let is_error = Errno::from_return(result).is_some();
    let words = [result as u64, u64::from(is_error), 0, 0, 0, 0, 0];
    report(task, frame, SyscallInfo::EXIT, words);
}

fn report(task: Current, frame: &mut TrapFrame, op: u8, words: [u64; 7]) {
    if let Some(tracee) = task.tracing.tracee() {
        let good = tracee.options().contains(Options::SYSGOOD);
        let ended = stop(task, &tracee, frame, Stop::call(good, op, words, &task));
        deliver(ended.signal);
    }
}

/// The tracer gave a signal at a stop that was for none: the task sends it to itself.
fn deliver(given: i32) {
    if let Some(signal) = Signal::new(given)
        && signal != Signal::SIGTRAP
    {
        let info = SigInfo::new(signal, code::SI_KERNEL);
        // A full queue of a real-time signal loses it, as on Linux.
        let _sent = signal::send_to_task(&current_arc(), signal, info);
    }
}
