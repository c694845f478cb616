//! `ioprio_get` and `ioprio_set`: a thread's priority at disks. It is kept, inherited and shown; there are no disks for it to act on,
//! as on a Linux whose disks have no scheduler.

use super::sched::for_each_named;
use crate::process;
use crate::process::Task;
use crate::process::sched::entity::policy;
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `IOPRIO_WHO_PROCESS`: one less is getpriority's number for the same.
const WHO_PROCESS: i32 = 1;
const WHO_USER: i32 = 3;

/// A priority is a class, above this, and a level in its lowest three bits.
const CLASS_SHIFT: u32 = 13;
const LEVELS: u32 = 7;

/// The classes.
mod class {
    pub const NONE: u32 = 0;
    pub const REALTIME: u32 = 1;
    pub const BEST_EFFORT: u32 = 2;
    pub const IDLE: u32 = 3;
}

/// Visits the threads that are named. User 0 is root here, and not the caller as for `getpriority`.
fn for_each(which: i32, who: i32, visit: &mut dyn FnMut(&Arc<Task>)) -> Result<()> {
    if (which, who) != (WHO_USER, 0) {
        return for_each_named(which.wrapping_sub(WHO_PROCESS), who, visit);
    }
    process::for_each_process(&mut |process| {
        if process.uid() == 0 {
            process.for_each_thread(visit);
        }
    });
    Ok(())
}

/// Why the running task cannot ask for this priority.
pub fn check_priority(priority: u32) -> Result<()> {
    let caller = process::current();
    let own = caller.cred();
    let is_allowed = || own.capable(Capability::SYS_NICE) || own.capable(Capability::SYS_ADMIN);
    match priority >> CLASS_SHIFT & 7 {
        class::REALTIME if !is_allowed() => Err(Errno::EPERM),
        class::NONE if priority & LEVELS != 0 => Err(Errno::EINVAL),
        class::NONE | class::REALTIME | class::BEST_EFFORT | class::IDLE => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// Sets the priority of all threads that `which` and `who` name, up to the first that the caller may not change.
pub fn ioprio_set(which: i32, who: i32, priority: u32) -> Result<()> {
    let caller = process::current();
    let own = caller.cred();
    let is_nice = own.capable(Capability::SYS_NICE);
    check_priority(priority)?;
    let mut result = Err(Errno::ESRCH);
    for_each(which, who, &mut |task| {
        if result == Err(Errno::EPERM) {
            return;
        }
        let other = task.cred_arc();
        let allowed = is_nice || other.uid == own.euid || other.uid == own.uid;
        result = if allowed { Ok(()) } else { Err(Errno::EPERM) };
        if allowed {
            // Linux keeps sixteen bits.
            task.sched.set_io_priority(priority & 0xffff);
        }
    })?;
    result
}

/// The priority of a thread as it was set; of a group's or a user's threads the best, which for those that have none
/// follows from how they are scheduled.
pub fn ioprio_get(which: i32, who: i32) -> Result<u32> {
    let mut best = None;
    for_each(which, who, &mut |task| {
        let kept = task.sched.io_priority();
        let value = if which == WHO_PROCESS { kept } else { effective(task, kept) };
        best = Some(best.map_or(value, |best: u32| best.min(value)));
    })?;
    best.ok_or(Errno::ESRCH)
}

fn effective(task: &Task, kept: u32) -> u32 {
    if kept >> CLASS_SHIFT & 7 != class::NONE {
        return kept;
    }
    let class = match task.sched.policy().policy {
        policy::IDLE => class::IDLE,
        policy::FIFO | policy::RR => class::REALTIME,
        _ => class::BEST_EFFORT,
    };
    let level = (task.sched.nice() + 20) / 5;
    class << CLASS_SHIFT | level.unsigned_abs()
}
