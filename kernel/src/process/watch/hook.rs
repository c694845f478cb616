//! Around each system call of a task that is watched.
//!
//! Runs in the task, with interrupts on and no lock held. Owns nothing. Never holds anything of the task across the call, which
//! may be its last. Locks: none of its own.

use super::counts;
use super::dispatch;
use super::switch::{Reason, Reasons, is_counting, unwatch};
use crate::arch::entry::frame::{SYSCALLS, SyscallTable, TrapFrame};
use crate::base::speculation::clamp;
use crate::base::tsc;
use crate::process::ptrace;
use crate::process::rings::{self, Ended};
use crate::process::seccomp;
use crate::process::task::current::{Current, current};
use crate::trace::{self, Event, Point, Points, Subscriber};
use abi::Errno;

/// getrandom(2), whose draws are told here.
const GETRANDOM: u32 = 318;

const CALLS: Points = Points::none().with(Point::Enter).with(Point::Leave);

/// A system call of a task that is watched, which is one of `calls`: what it returns.
pub fn watched(frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    let task = current();
    let reasons = Reasons::of(&task);
    match reasons.is_only(Reason::Ring) {
        true => told(task, reasons, frame, calls),
        false => watched_otherwise(task, reasons, frame, calls),
    }
}

/// The same where a session of the trace is not the only reason, or none.
#[inline(never)]
fn watched_otherwise(
    task: Current,
    reasons: Reasons,
    frame: &mut TrapFrame,
    calls: &SyscallTable,
) -> i64 {
    if !reasons.is_any() {
        return counted(task, frame, calls);
    }
    if reasons.is_own(Reason::Dispatch) && dispatch::diverts(task, frame) {
        return frame.return_value();
    }
    told(task, reasons, frame, calls)
}

/// The same of a call of which is told.
#[inline(always)]
fn told(task: Current, reasons: Reasons, frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    let number = frame.orig_rax as u32;
    let is_alone = !trace::wanted_by_others(Subscriber::Ring, CALLS);
    if rings::is_bare(number) && is_alone {
        return told_once::<{ rings::BARE_CALL }>(task, reasons, frame, calls);
    }
    if rings::is_short(number) && is_alone {
        return told_once::<{ rings::CALL }>(task, reasons, frame, calls);
    }
    told_twice(task, number, frame, calls)
}

/// The same of a call of which is told when it has ended, in `N` words.
#[inline(never)]
fn told_once<const N: usize>(
    task: Current,
    reasons: Reasons,
    frame: &mut TrapFrame,
    calls: &SyscallTable,
) -> i64 {
    let number = frame.orig_rax as u32;
    let start = tsc::read();
    // A bare or short one is in the table: `rings::calls` asserts it.
    let result = match calls.get(clamp(number as usize, SYSCALLS)) {
        Some(call) if reasons.is_only(Reason::Ring) && !is_judged(task) => call(frame),
        _ => counted(task, frame, calls),
    };
    Ended { start, number, result, frame }.told::<N>(reasons.is_for_all(), task);
    result
}

/// The same of a call of which is told when it begins, and when it has ended.
#[inline(never)]
fn told_twice(task: Current, number: u32, frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    let args = frame.syscall_args();
    trace::at(Point::Enter, || Event::Enter { number, args: &args });
    let result = counted(task, frame, calls);
    if number == GETRANDOM && result > 0 {
        trace::at(Point::Draw, || Event::Draw { by: "getrandom", bytes: result as u64 });
    }
    trace::at(Point::Leave, || Event::Leave { number, result, args: &args });
    result
}

fn counted(task: Current, frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    // As at the entry: the low half, and the last entry for what is too great.
    let number = clamp((frame.orig_rax as u32 as usize).min(SYSCALLS - 1), SYSCALLS);
    let all = is_counting();
    let own = task.with_counts(|counts| counts.begin(number));
    if !all && !own {
        if !stays_watched(task) && !Reasons::of(&task).is_any() {
            unwatch(task);
        }
        return call(task, number, frame, calls);
    }
    if all {
        counts::begin(number);
    }
    let start = tsc::read();
    let result = call(task, number, frame, calls);
    let ticks = tsc::read().wrapping_sub(start);
    let failed = Errno::from_return(result).is_some();
    if all {
        counts::end(number, failed, ticks);
    }
    if own {
        task.with_counts(|counts| counts.end(number, failed, ticks));
    }
    result
}

fn call(task: Current, number: usize, frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    if is_judged(task) {
        return ptrace::watched(frame, calls);
    }
    calls[number](frame)
}

/// Whether the calls of the running task have to come here though nobody counts them.
fn stays_watched(task: Current) -> bool {
    task.tracing.is_traced() || task.seccomp.is_on() && !seccomp::has_own_calls(task)
}

/// Whether a tracer or a filter has a say in the calls of the running task.
fn is_judged(task: Current) -> bool {
    task.tracing.is_traced() || task.seccomp.is_on()
}
