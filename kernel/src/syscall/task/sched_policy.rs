//! Who may schedule whom how: sched_setscheduler, sched_setparam, sched_setattr and their counterparts.
//!
//! Owns the rules of Linux 6.12, which all three ways in share. There is no SCHED_DEADLINE and no class in BPF. Locks: none.

use super::sched::{check_owner, task_or_self, within_nice_limit};
use crate::base::PAGE_SIZE;
use crate::mm::user::{self, UserPtr};
use crate::process::sched::entity::policy;
use crate::process::sched::{self, Policy};
use crate::process::task::limits::Resource;
use crate::process::{self, Task};
use crate::vfs::Capability;
use abi::process::{SchedAttr, sched_flags};
use abi::{Errno, Result};

/// `SCHED_RESET_ON_FORK`, beside a policy.
const RESET_ON_FORK: u32 = 0x4000_0000;

/// What a caller asks for.
struct Request {
    /// None keeps the one that the task has.
    policy: Option<u32>,
    flags: u64,
    priority: u32,
    nice: i32,
    /// Nanoseconds, 0 for the usual slice; None keeps it.
    slice: Option<u64>,
}

pub fn sched_setscheduler(tid: i32, number: u32, param: UserPtr<i32>) -> Result<()> {
    if tid < 0 || param.is_null() || (number as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    set_legacy(tid, Some(number), param.read()?)
}

pub fn sched_setparam(tid: i32, param: UserPtr<i32>) -> Result<()> {
    if tid < 0 || param.is_null() {
        return Err(Errno::EINVAL);
    }
    set_legacy(tid, None, param.read()?)
}

fn set_legacy(tid: i32, number: Option<u32>, priority: i32) -> Result<()> {
    let target = task_or_self(tid)?;
    let resets = number.is_some_and(|number| number & RESET_ON_FORK != 0);
    let request = Request {
        policy: number.map(|number| number & !RESET_ON_FORK),
        flags: if resets { sched_flags::RESET_ON_FORK } else { 0 },
        priority: priority as u32,
        nice: target.sched.nice(),
        slice: None,
    };
    set(&target, &request)
}

pub fn sched_setattr(tid: i32, attr: u64, flags: u32) -> Result<()> {
    if attr == 0 || tid < 0 || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let attr = read_attr(attr)?;
    if (attr.policy as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let target = task_or_self(tid)?;
    let keeps = |flag| attr.flags & flag != 0;
    let mut request = Request {
        policy: (!keeps(sched_flags::KEEP_POLICY)).then_some(attr.policy),
        flags: attr.flags,
        priority: attr.priority,
        nice: attr.nice.clamp(-20, 19),
        slice: Some(attr.runtime),
    };
    if keeps(sched_flags::KEEP_PARAMS) {
        let own = target.sched.policy();
        match own.is_realtime() {
            true => request.priority = own.priority,
            false => request.nice = target.sched.nice(),
        }
    }
    set(&target, &request)
}

/// Reads a structure that may be of another version; what is too long is told which size is known.
fn read_attr(addr: u64) -> Result<SchedAttr> {
    let size = match user::read_u32(addr)? as usize {
        0 => SchedAttr::SIZE_VER0,
        size => size,
    };
    let fits = (SchedAttr::SIZE_VER0..=PAGE_SIZE).contains(&size);
    let read =
        if fits { user::read_extensible::<SchedAttr>(addr, size) } else { Err(Errno::E2BIG) };
    let attr = read.inspect_err(|&error| {
        if error == Errno::E2BIG {
            // Linux looks not whether this works either.
            let _told = UserPtr::<u32>::new(addr).write(&(size_of::<SchedAttr>() as u32));
        }
    })?;
    let has_clamps = attr.flags & sched_flags::UTIL_CLAMP != 0;
    if has_clamps && size < size_of::<SchedAttr>() { Err(Errno::EINVAL) } else { Ok(attr) }
}

fn set(target: &Task, request: &Request) -> Result<()> {
    let old = target.sched.policy();
    let (number, reset_on_fork) = match request.policy {
        Some(number) => (number, request.flags & sched_flags::RESET_ON_FORK != 0),
        None => (old.policy, old.reset_on_fork),
    };
    let is_known =
        matches!(number, policy::NORMAL | policy::BATCH | policy::IDLE | policy::FIFO | policy::RR);
    let new = Policy { policy: number, priority: request.priority, reset_on_fork };
    let fits = if new.is_realtime() { 1..=99 } else { 0..=0 };
    if !is_known || request.flags & !sched_flags::ALL != 0 || !fits.contains(&request.priority) {
        return Err(Errno::EINVAL);
    }
    check_rights(target, old, new, request.nice)?;
    if request.flags & sched_flags::UTIL_CLAMP != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if request.flags & sched_flags::KEEP_PARAMS != 0 {
        sched::set_policy(target, Policy { reset_on_fork, ..old });
    } else {
        if has_nice(new) {
            target.sched.set_nice(request.nice);
            if let Some(slice) = request.slice {
                target.sched.set_slice(slice);
            }
        }
        sched::set_policy(target, new);
    }
    // A task that lowers its own priority yields at once.
    sched::cond_resched();
    Ok(())
}

/// Whether the policy comes with a nice value; SCHED_IDLE leaves that of the task alone.
fn has_nice(policy: Policy) -> bool {
    matches!(policy.policy, policy::NORMAL | policy::BATCH)
}

/// What needs CAP_SYS_NICE.
fn check_rights(target: &Task, old: Policy, new: Policy, nice: i32) -> Result<()> {
    let own_nice = target.sched.nice();
    let most = target.process().limits().soft(Resource::RtPriority);
    let begins = new.policy != old.policy && most == 0;
    let is_higher = new.priority > old.priority && u64::from(new.priority) > most;
    let asks_more = (new.is_realtime() && (begins || is_higher))
        || (has_nice(new) && nice < own_nice && !within_nice_limit(target, nice));
    // SCHED_IDLE is left as a nice value of 20 would be.
    let leaves_idle = old.policy == policy::IDLE && new.policy != policy::IDLE;
    let is_raised = leaves_idle && !within_nice_limit(target, own_nice);
    let forgets_reset = old.reset_on_fork && !new.reset_on_fork;
    let is_other = check_owner(target).is_err();
    let needs_right = asks_more || is_raised || forgets_reset || is_other;
    if !needs_right || process::current().cred().capable(Capability::SYS_NICE) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

pub fn sched_getattr(tid: i32, attr: u64, size: u32, flags: u32) -> Result<()> {
    let size = size as usize;
    let fits = (SchedAttr::SIZE_VER0..=PAGE_SIZE).contains(&size);
    if attr == 0 || tid < 0 || !fits || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let target = task_or_self(tid)?;
    let own = target.sched.policy();
    let size = size.min(size_of::<SchedAttr>());
    let mut shown = SchedAttr {
        size: size as u32,
        policy: own.policy,
        flags: if own.reset_on_fork { sched_flags::RESET_ON_FORK } else { 0 },
        ..SchedAttr::default()
    };
    if own.is_realtime() {
        shown.priority = own.priority;
    } else {
        shown.nice = target.sched.nice();
        shown.runtime = target.sched.slice();
    }
    shown.write_first(size, |bytes| user::write_bytes(attr, bytes))
}

pub fn sched_getscheduler(tid: i32) -> Result<i32> {
    let policy = task_or_self(tid)?.sched.policy();
    let flag = if policy.reset_on_fork { RESET_ON_FORK } else { 0 };
    Ok((policy.policy | flag) as i32)
}

pub fn sched_getparam(tid: i32, param: UserPtr<i32>) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let policy = task_or_self(tid)?.sched.policy();
    param.write(&(policy.priority as i32))
}
