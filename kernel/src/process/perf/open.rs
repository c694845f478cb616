//! The call: an event by its attributes, of whom, where, in which group, and who may have it.
//!
//! The checks stand in Linux's order. Owns nothing. Locks: the mutex of all events, to attach it.

use super::chains::MAX_STACK;
use super::event::{Event, Subject, changes};
use super::settings::{PARANOID, rate, read_attr};
use super::{breakpoint, file, life, map, tracepoint};
use crate::base::percpu;
use crate::mm::fallible::try_arc;
use crate::process::ptrace::access::may_attach;
use crate::process::task::current::{current, current_arc};
use crate::process::task::task::Task;
use crate::process::tree::table::lookup_task;
use crate::time::ClockId;
use crate::vfs::{Capability, OpenFile};
use abi::perf::{Attr, Software, bit, kind, open as flag, sample};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What is asked for.
pub struct Request {
    pub attr: u64,
    pub pid: i32,
    pub cpu: i32,
    pub group_fd: i32,
    pub flags: u64,
}

fn is_capable() -> bool {
    let cred = current().cred_arc();
    cred.capable(Capability::PERFMON) || cred.capable(Capability::SYS_ADMIN)
}

/// Whether this is open to who asks: up to this level, and to the capable.
fn is_open(level: i32) -> bool {
    PARANOID.get() <= level || is_capable()
}

/// `EACCES` above this level, but for the capable.
fn allow(level: i32) -> Result<()> {
    if is_open(level) { Ok(()) } else { Err(Errno::EACCES) }
}

/// An event that may be asked for, and is opened once there is a descriptor for it.
pub struct Wanted {
    attr: Attr,
    request: Request,
}

impl Wanted {
    /// Whether its descriptor closes on exec.
    pub fn closes_on_exec(&self) -> bool {
        self.request.flags & flag::CLOEXEC != 0
    }
}

/// What is found out before a descriptor is taken.
pub fn check(request: Request) -> Result<Wanted> {
    if request.flags & !flag::KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let attr = read_attr(request.attr)?;
    check_rights(&attr)?;
    let of_cgroup = request.flags & flag::CGROUP != 0;
    if of_cgroup && (request.pid == -1 || request.cpu == -1) {
        return Err(Errno::EINVAL);
    }
    Ok(Wanted { attr, request })
}

/// Opens an event.
pub fn open(wanted: Wanted) -> Result<Arc<OpenFile>> {
    let Wanted { attr, request: Request { pid, cpu, group_fd, flags, .. } } = wanted;
    let named = if group_fd == -1 { None } else { Some(file::event_of(group_fd)?) };
    let leader = named.as_ref().filter(|_| flags & flag::NO_GROUP == 0);
    if flags & flag::CGROUP != 0 {
        // There are no control groups, so no descriptor is one's.
        return Err(Errno::EBADF);
    }
    let task = if pid == -1 { None } else { Some(find(pid)?) };
    let differs = |leader: &Arc<Event>| leader.attr.has(bit::INHERIT) != attr.has(bit::INHERIT);
    if task.is_some() && leader.is_some_and(differs) {
        return Err(Errno::EINVAL);
    }
    let (what, cpu) = check_kind(&attr, task.as_deref(), cpu)?;
    let _steady = match &task {
        Some(task) if !is_capable() => Some(may_attach(task).ok_or(Errno::EACCES)?),
        Some(_) => None,
        None => {
            allow(0)?;
            None
        }
    };
    let subject = match &task {
        Some(task) => Subject::Task(Arc::downgrade(task)),
        None => Subject::Cpu,
    };
    let event = try_arc(Event::new(attr, what, cpu, subject, None).with_samples()?)?;
    if let Some(leader) = leader {
        check_group(&event, leader)?;
    }
    if flags & flag::OUTPUT != 0
        && let Some(named) = &named
    {
        map::set_output(&event, Some(named))?;
    }
    let opened = try_arc(file::new(&event)?)?;
    life::attach(&event, leader, &changes())?;
    Ok(opened)
}

/// What depends on who asks, and the numbers that root sets.
fn check_rights(attr: &Attr) -> Result<()> {
    allow(2)?;
    if !attr.has(bit::EXCLUDE_KERNEL) {
        allow(1)?;
    }
    if attr.has(bit::NAMESPACES) && !is_capable() {
        return Err(Errno::EACCES);
    }
    if !attr.has_good_period(rate()) {
        return Err(Errno::EINVAL);
    }
    if attr.samples(sample::PHYS_ADDR) {
        allow(1)?;
    }
    Ok(())
}

fn find(pid: i32) -> Result<Arc<Task>> {
    let task = match pid {
        0 => Some(current_arc()),
        pid => lookup_task(pid),
    };
    task.filter(|task| !task.is_exiting()).ok_or(Errno::ESRCH)
}

/// What is counted and where, if there is such an event.
fn check_kind(attr: &Attr, task: Option<&Task>, cpu: i32) -> Result<(Software, Option<usize>)> {
    let of_task = task.is_some();
    let cpu = match usize::try_from(cpu) {
        Ok(cpu) if cpu < percpu::cpus_online() => Some(cpu),
        _ if cpu == -1 && of_task => None,
        _ => return Err(Errno::EINVAL),
    };
    if attr.has(bit::SIGTRAP) && !of_task {
        return Err(Errno::EINVAL);
    }
    if attr.has(bit::INHERIT) && attr.samples(sample::READ) && !attr.samples(sample::TID) {
        return Err(Errno::EINVAL);
    }
    let what = match attr.kind {
        kind::SOFTWARE => Software::of(attr.config).ok_or(Errno::ENOENT)?,
        kind::BREAKPOINT => breakpoint::find(attr, task, cpu)?,
        kind::TRACEPOINT => tracepoint::find(attr.config).ok_or(Errno::EINVAL)?,
        _ => return Err(Errno::ENOENT),
    };
    // What calls are made with is told of all tasks only to who may see everything.
    if tracepoint::is_one(what) && attr.samples(sample::RAW) && !of_task && !is_open(-1) {
        return Err(Errno::EPERM);
    }
    let wants_hardware = attr.samples(sample::BRANCH_STACK)
        || attr.wants_vectors()
        || attr.has(bit::AUX_OUTPUT)
        || attr.wants_aux();
    if wants_hardware || attr.is_sampling() && attr.sample_type & !sample::GIVEN != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if attr.samples(sample::CALLCHAIN) && i32::from(attr.sample_max_stack) > MAX_STACK.get() {
        return Err(Errno::EOVERFLOW);
    }
    if attr.has(bit::USE_CLOCKID) {
        let coarse = [ClockId::RealtimeCoarse, ClockId::MonotonicCoarse];
        let clock = ClockId::from_abi(attr.clockid).filter(|clock| !coarse.contains(clock));
        clock.ok_or(Errno::EINVAL)?;
    }
    Ok((what, cpu))
}

/// The rules of groups.
fn check_group(event: &Event, leader: &Arc<Event>) -> Result<()> {
    let clock = |event: &Event| event.attr.has(bit::USE_CLOCKID).then_some(event.attr.clockid);
    let same_task = match (&event.subject, &leader.subject) {
        (Subject::Task(task), Subject::Task(other)) => task.ptr_eq(other),
        (Subject::Cpu, Subject::Cpu) => true,
        _ => false,
    };
    let leads = Arc::ptr_eq(&leader.leader(), leader);
    let alone = event.attr.has(bit::EXCLUSIVE) || event.attr.has(bit::PINNED);
    if !leads || clock(event) != clock(leader) || event.cpu != leader.cpu || !same_task || alone {
        return Err(Errno::EINVAL);
    }
    Ok(())
}
