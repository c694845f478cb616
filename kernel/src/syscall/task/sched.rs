//! Scheduling: priorities, affinity, yielding.

use crate::base::percpu;
use crate::mm::user::{self, UserPtr};
use crate::process::sched;
use crate::process::sched::entity::policy;
use crate::process::task::limits::Resource;
use crate::process::{self, Process, Task};
use crate::vfs::Capability;
use abi::time::Timespec;
use abi::{Errno, Result};
use alloc::sync::Arc;

pub fn sched_yield() {
    sched::yield_now();
}

/// The task with this number; 0 is the caller.
pub(super) fn task_or_self(tid: i32) -> Result<Arc<Task>> {
    if tid < 0 { Err(Errno::EINVAL) } else { named(tid) }
}

/// As [`task_or_self`], for calls that have no opinion on negative numbers.
fn named(tid: i32) -> Result<Arc<Task>> {
    match tid {
        0 => Ok(process::current_arc()),
        _ => process::lookup_task(tid).ok_or(Errno::ESRCH),
    }
}

/// Whether the caller may change how another task is scheduled.
pub(super) fn check_owner(target: &Task) -> Result<()> {
    let caller = process::current();
    let own = caller.cred();
    let other = target.cred_arc();
    let same = own.euid == other.euid || own.euid == other.uid;
    if same || own.capable(Capability::SYS_NICE) { Ok(()) } else { Err(Errno::EPERM) }
}

pub fn sched_get_priority_max(number: u32) -> Result<i32> {
    match number {
        policy::FIFO | policy::RR => Ok(99),
        policy::NORMAL | policy::BATCH | policy::IDLE | policy::DEADLINE => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

pub fn sched_get_priority_min(number: u32) -> Result<i32> {
    sched_get_priority_max(number).map(|max| if max == 0 { 0 } else { 1 })
}

pub fn sched_rr_get_interval(tid: i32, out: UserPtr<Timespec>) -> Result<()> {
    let target = task_or_self(tid)?;
    out.write(&Timespec::from_nanos(sched::slice_nanos(&target)))
}

/// CPUs that exist, one bit each.
fn possible_cpus() -> u64 {
    percpu::online_mask()
}

pub fn sched_setaffinity(tid: i32, len: usize, mask: u64) -> Result<()> {
    let mut bytes = [0; 8];
    let len = len.min(bytes.len());
    user::read_bytes(mask, &mut bytes[..len])?;
    let target = named(tid)?;
    check_owner(&target)?;
    let allowed = u64::from_le_bytes(bytes) & possible_cpus();
    if allowed == 0 {
        return Err(Errno::EINVAL);
    }
    target.sched.set_affinity(allowed);
    sched::affinity_changed(&target);
    Ok(())
}

/// Returns the bytes written, as Linux does; libc hides it.
pub fn sched_getaffinity(tid: i32, len: usize, mask: u64) -> Result<usize> {
    if len < 8 || !len.is_multiple_of(8) {
        return Err(Errno::EINVAL);
    }
    let allowed = named(tid)?.sched.affinity() & possible_cpus();
    user::write_bytes(mask, &allowed.to_le_bytes())?;
    Ok(8)
}

const PRIO_PROCESS: i32 = 0;
const PRIO_PGRP: i32 = 1;
const PRIO_USER: i32 = 2;

/// Visits every task that `which` and `who` name.
pub(super) fn for_each_named(
    which: i32,
    who: i32,
    visit: &mut dyn FnMut(&Arc<Task>),
) -> Result<()> {
    let task = process::current();
    let mut threads = |process: &Arc<Process>| process.for_each_thread(visit);
    match which {
        PRIO_PROCESS => {
            if let Ok(task) = task_or_self(who) {
                visit(&task);
            }
        }
        PRIO_PGRP => {
            let group = if who == 0 { task.process().pgid() } else { who };
            process::for_each_in_group(group, &mut threads);
        }
        PRIO_USER => {
            let user = if who == 0 { task.cred().uid } else { who as u32 };
            process::for_each_process(&mut |process| {
                if process.uid() == user {
                    threads(process);
                }
            });
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(())
}

/// Returns 20 minus the nice value, so that no success looks like an error.
pub fn getpriority(which: i32, who: i32) -> Result<i32> {
    let mut best = None;
    for_each_named(which, who, &mut |task| {
        let value = 20 - task.sched.nice();
        best = best.max(Some(value));
    })?;
    best.ok_or(Errno::ESRCH)
}

pub fn setpriority(which: i32, who: i32, nice: i32) -> Result<()> {
    let nice = nice.clamp(-20, 19);
    let mut result = Err(Errno::ESRCH);
    for_each_named(which, who, &mut |task| {
        let set = set_nice(task, nice);
        if result != Err(Errno::EPERM) && result != Err(Errno::EACCES) {
            result = set;
        }
    })?;
    result
}

/// Whether RLIMIT_NICE allows a nice value.
pub(super) fn within_nice_limit(target: &Task, nice: i32) -> bool {
    let needed = u64::from((20 - nice).unsigned_abs());
    needed <= target.process().limits().soft(Resource::Nice)
}

fn set_nice(target: &Arc<Task>, nice: i32) -> Result<()> {
    check_owner(target)?;
    let is_more = nice < target.sched.nice() && !within_nice_limit(target, nice);
    if is_more && !process::current().cred().capable(Capability::SYS_NICE) {
        return Err(Errno::EACCES);
    }
    target.sched.set_nice(nice);
    Ok(())
}
