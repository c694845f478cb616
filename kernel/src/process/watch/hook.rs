//! Around each system call of a task that is watched.
//!
//! Runs in the task, with interrupts on and no lock held. Owns nothing. Never holds anything of the task across the call, which
//! may be its last. Locks: none of its own.

use super::counts;
use super::switch::{is_counting, unwatch};
use crate::arch::entry::frame::{SYSCALLS, SyscallTable, TrapFrame};
use crate::base::tsc;
use crate::process::ptrace;
use crate::process::task::current::{Current, current};
use abi::Errno;

/// A system call of a task that is watched, which is one of `calls`: what it returns.
pub fn watched(frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    let task = current();
    // As at the entry: the low half, and the last entry for what is too great.
    let number = (frame.orig_rax as u32 as usize).min(SYSCALLS - 1);
    let all = is_counting();
    let own = task.with_counts(|counts| counts.begin(number));
    if !all && !own {
        if !is_judged(task) {
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

/// Whether a tracer or a filter has a say in the calls of the running task.
fn is_judged(task: Current) -> bool {
    task.tracing.is_traced() || task.seccomp.is_on()
}
