//! Processes and threads: creation, ends, waiting, groups and sessions, limits, usage, prctl.

use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::switch;
use crate::base::page::USER_END;
use crate::base::percpu;
use crate::mm::user::{self, UserPtr};
use crate::process::task::current::Current;
use crate::process::task::limits::{self, Limit, Resource};
use crate::process::timers::times::Usage;
use crate::process::tree::clone::{self, CloneArgs, CloneFlags};
use crate::process::tree::exit::{self, Status};
use crate::process::{self, Process};
use crate::vfs::Capability;
use abi::process::{CloneArgsRaw, Rusage};
use abi::ptrace::DispatchConfig;
use abi::signal::Signal;
use abi::time::Timeval;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::convert::Infallible;
use core::sync::atomic::Ordering;

pub fn fork(frame: &mut TrapFrame) -> Result<i32> {
    clone::clone(frame, &CloneArgs::FORK)
}

pub fn vfork(frame: &mut TrapFrame) -> Result<i32> {
    let flags = CloneFlags::VM | CloneFlags::VFORK;
    clone::clone(frame, &CloneArgs { flags, ..CloneArgs::FORK })
}

pub fn clone(
    frame: &mut TrapFrame,
    flags: u64,
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
) -> Result<i32> {
    let args = CloneArgs {
        flags: CloneFlags::from_bits_truncate(flags & 0xffff_ff00),
        exit_signal: clone::exit_signal_of(flags),
        stack,
        tls,
        parent_tid,
        child_tid,
        // Where clone3 has a place of its own, clone has only this one.
        pidfd: parent_tid,
    };
    clone::clone(frame, &args)
}

/// The size of clone3's first version.
const CLONE_ARGS_SIZE_VER0: usize = 64;

pub fn clone3(frame: &mut TrapFrame, args: u64, size: usize) -> Result<i32> {
    if size < CLONE_ARGS_SIZE_VER0 {
        return Err(Errno::EINVAL);
    }
    if size > crate::base::PAGE_SIZE {
        return Err(Errno::E2BIG);
    }
    let raw: CloneArgsRaw = user::read_extensible(args, size)?;
    let flags = CloneFlags::from_bits(raw.flags).ok_or(Errno::EINVAL)?;
    let bad_signal = raw.exit_signal > 64
        || (raw.exit_signal != 0 && flags.intersects(CloneFlags::THREAD | CloneFlags::PARENT));
    let bad_stack = (raw.stack == 0) != (raw.stack_size == 0)
        || !user::in_range(raw.stack, raw.stack_size as usize);
    if bad_signal || bad_stack || raw.set_tid_size != 0 || raw.set_tid != 0 {
        return Err(Errno::EINVAL);
    }
    let args = CloneArgs {
        flags,
        exit_signal: raw.exit_signal as i32,
        stack: raw.stack.wrapping_add(raw.stack_size),
        tls: raw.tls,
        parent_tid: raw.parent_tid,
        child_tid: raw.child_tid,
        pidfd: raw.pidfd,
    };
    clone::clone(frame, &args)
}

pub fn exit(code: i32) -> Infallible {
    exit::do_exit(Status::exited(code))
}

pub fn exit_group(code: i32) -> Infallible {
    exit::do_group_exit(Status::exited(code))
}

pub fn rusage(usage: &Usage) -> Rusage {
    Rusage {
        utime: Timeval::from_nanos(usage.utime_ns),
        stime: Timeval::from_nanos(usage.stime_ns),
        maxrss: (usage.max_rss_pages * 4) as i64,
        minflt: usage.minor_faults as i64,
        majflt: usage.major_faults as i64,
        nvcsw: usage.voluntary as i64,
        nivcsw: usage.involuntary as i64,
        ..Rusage::default()
    }
}

const RUSAGE_SELF: i32 = 0;
const RUSAGE_CHILDREN: i32 = -1;
const RUSAGE_THREAD: i32 = 1;

pub fn getrusage(who: i32, out: UserPtr<Rusage>) -> Result<()> {
    let task = process::current();
    let usage = match who {
        RUSAGE_SELF => {
            let mut usage = task.process().usage();
            usage.max_rss_pages = usage.max_rss_pages.max(task.mm().usage().rss_peak);
            usage
        }
        RUSAGE_CHILDREN => task.process().children_usage(),
        RUSAGE_THREAD => task.times.usage(),
        _ => return Err(Errno::EINVAL),
    };
    out.write(&rusage(&usage))
}

#[inline]
pub fn getpid() -> i32 {
    process::current().process().pid()
}

#[inline]
pub fn gettid() -> i32 {
    process::current().tid()
}

pub fn getppid() -> i32 {
    process::current().process().ppid()
}

pub fn set_tid_address(addr: u64) -> i32 {
    let task = process::current();
    task.set_clear_child_tid(addr);
    task.tid()
}

/// The process with this number; 0 is the caller's.
fn process_or_self(pid: i32) -> Result<Arc<Process>> {
    match pid {
        0 => Ok(process::current().process().clone()),
        _ => process::lookup(pid).ok_or(Errno::ESRCH),
    }
}

pub fn getpgid(pid: i32) -> Result<i32> {
    Ok(process_or_self(pid)?.pgid())
}

pub fn getpgrp() -> i32 {
    process::current().process().pgid()
}

pub fn getsid(pid: i32) -> Result<i32> {
    Ok(process_or_self(pid)?.session().sid())
}

pub fn setpgid(pid: i32, pgid: i32) -> Result<()> {
    let pgid = if pgid == 0 { pid } else { pgid };
    if pgid < 0 {
        return Err(Errno::EINVAL);
    }
    let target = process_or_self(pid)?;
    process::set_group(process::current().process(), &target, pgid)
}

pub fn setsid() -> Result<i32> {
    process::new_session(process::current().process())
}

/// `struct rlimit`.
pub fn getrlimit(which: u32, out: UserPtr<[u64; 2]>) -> Result<()> {
    let which = Resource::from_number(which)?;
    let limit = process::current().process().limits().get(which);
    out.write(&[limit.soft, limit.hard])
}

fn read_limit(from: UserPtr<[u64; 2]>) -> Result<Limit> {
    let [soft, hard] = from.read()?;
    Ok(Limit { soft, hard })
}

pub fn setrlimit(which: u32, new: UserPtr<[u64; 2]>) -> Result<()> {
    let new = read_limit(new)?;
    let which = Resource::from_number(which)?;
    let task = process::current();
    limits::change(task, task.process(), which, Some(new)).map(|_| ())
}

pub fn prlimit64(
    pid: i32,
    which: u32,
    new: UserPtr<[u64; 2]>,
    old: UserPtr<[u64; 2]>,
) -> Result<()> {
    let which = Resource::from_number(which)?;
    let new = new.non_null().map(read_limit).transpose()?;
    let task = process::current();
    let target = process_or_self(pid)?;
    if !Arc::ptr_eq(&target, task.process()) && !may_inspect(task, &target) {
        return Err(Errno::EPERM);
    }
    let before = limits::change(task, &target, which, new)?;
    match old.non_null() {
        Some(old) => old.write(&[before.soft, before.hard]),
        None => Ok(()),
    }
}

/// Whether the caller has the target's identity in full, or may act on any resource.
fn may_inspect(caller: Current, target: &Process) -> bool {
    let (own, other) = (caller.cred(), target.cred());
    let same_user = [other.uid, other.euid, other.suid].iter().all(|&id| id == own.uid);
    let same_group = [other.gid, other.egid, other.sgid].iter().all(|&id| id == own.gid);
    (same_user && same_group) || own.capable(Capability::SYS_RESOURCE)
}

const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;
const ARCH_GET_FS: u32 = 0x1003;
const ARCH_GET_GS: u32 = 0x1004;

pub fn arch_prctl(code: u32, addr: u64) -> Result<()> {
    match code {
        ARCH_SET_FS | ARCH_SET_GS if addr >= USER_END => Err(Errno::EPERM),
        ARCH_SET_FS => {
            switch::set_fs_base(addr);
            Ok(())
        }
        ARCH_SET_GS => {
            switch::set_user_gs_base(addr);
            Ok(())
        }
        ARCH_GET_FS => UserPtr::new(addr).write(&switch::fs_base()),
        ARCH_GET_GS => UserPtr::new(addr).write(&switch::user_gs_base()),
        _ => Err(Errno::EINVAL),
    }
}

const PR_SET_PDEATHSIG: i32 = 1;
const PR_GET_PDEATHSIG: i32 = 2;
const PR_GET_DUMPABLE: i32 = 3;
const PR_SET_DUMPABLE: i32 = 4;
const PR_SET_NAME: i32 = 15;
const PR_GET_NAME: i32 = 16;
const PR_GET_SECCOMP: i32 = 21;
const PR_SET_SECCOMP: i32 = 22;
const PR_GET_TSC: i32 = 25;
const PR_SET_TSC: i32 = 26;
/// User mode may read the time-stamp counter, or gets SIGSEGV.
const PR_TSC_ENABLE: u32 = 1;
const PR_TSC_SIGSEGV: u32 = 2;
const PR_MCE_KILL: i32 = 33;
const PR_MCE_KILL_GET: i32 = 34;
const PR_MCE_KILL_SET: u64 = 1;
/// PR_MCE_KILL_DEFAULT; the others are 0 and 1.
const PR_MCE_KILL_DEFAULT: u32 = 2;
const PR_SET_TIMERSLACK: i32 = 29;
const PR_GET_TIMERSLACK: i32 = 30;
const PR_SET_CHILD_SUBREAPER: i32 = 36;
const PR_GET_CHILD_SUBREAPER: i32 = 37;
const PR_SET_NO_NEW_PRIVS: i32 = 38;
const PR_GET_NO_NEW_PRIVS: i32 = 39;
const PR_SET_THP_DISABLE: i32 = 41;
const PR_GET_THP_DISABLE: i32 = 42;
const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;

/// The default slack of timers, in nanoseconds: what Linux shows.
const TIMER_SLACK: u64 = 50_000;

pub fn prctl(option: i32, arg2: u64, arg3: u64, arg4: u64, arg5: u64) -> Result<i64> {
    let more = [arg3, arg4, arg5].iter().any(|&arg| arg != 0);
    if option == PR_SET_SYSCALL_USER_DISPATCH {
        let config = DispatchConfig { mode: arg2, selector: arg5, offset: arg3, len: arg4 };
        return process::watch::set_dispatch(&process::current(), &config).map(|()| 0);
    }
    if option == PR_MCE_KILL {
        return set_mce_kill([arg2, arg3, arg4, arg5]).map(|()| 0);
    }
    if let Some(answer) = super::prctl_speculation::prctl(option, [arg2, arg3, arg4, arg5])? {
        return Ok(answer);
    }
    match set_setting(option, arg2, arg3, more)? {
        Some(()) => Ok(0),
        None => match get_setting(option, arg2, more)? {
            Some(answer) => Ok(answer),
            None => super::prctl_caps::prctl(option, arg2, arg3, arg4, arg5),
        },
    }
}

/// PR_MCE_KILL: kept, and told again.
fn set_mce_kill(args: [u64; 4]) -> Result<()> {
    let wanted = match args {
        [0, 0, 0, 0] => PR_MCE_KILL_DEFAULT,
        [PR_MCE_KILL_SET, policy @ 0..=2, 0, 0] => policy as u32,
        _ => return Err(Errno::EINVAL),
    };
    // Stored so that what nobody has set is the default. Relaxed: see `set_setting`.
    process::current().settings.mce_kill.store(PR_MCE_KILL_DEFAULT - wanted, Ordering::Relaxed);
    Ok(())
}

/// The options that set something of the task or its process; `None` for others. `more` says that a further argument is
/// not 0.
fn set_setting(option: i32, arg2: u64, arg3: u64, more: bool) -> Result<Option<()>> {
    let task = process::current();
    let (settings, process) = (&task.settings, task.process());
    // Relaxed throughout: single settings of the running task or its process.
    let order = Ordering::Relaxed;
    match option {
        PR_SET_PDEATHSIG => {
            let number = i32::try_from(arg2).map_err(|_| Errno::EINVAL)?;
            if number != 0 && Signal::new(number).is_none() {
                return Err(Errno::EINVAL);
            }
            settings.parent_death_signal.store(number, order);
        }
        PR_SET_DUMPABLE => {
            if arg2 > 1 {
                return Err(Errno::EINVAL);
            }
            process.dumpable.store(arg2 as u32, order);
        }
        PR_SET_TSC => task.forbid_tsc(match arg2 as u32 {
            PR_TSC_ENABLE => false,
            PR_TSC_SIGSEGV => true,
            _ => return Err(Errno::EINVAL),
        }),
        PR_SET_NAME => {
            let mut name = [0; process::COMM_LEN - 1];
            let len = user::read_cstr_into(arg2, &mut name)?.unwrap_or(name.len());
            task.set_comm(&name[..len]);
            process::perf::named(&task);
        }
        PR_SET_TIMERSLACK => {
            let slack = if arg2 as i64 <= 0 { TIMER_SLACK } else { arg2 };
            settings.timer_slack.store(slack, order);
        }
        PR_SET_CHILD_SUBREAPER => {
            process.child_subreaper.store(arg2 != 0, order);
        }
        PR_SET_NO_NEW_PRIVS => {
            if arg2 != 1 || more {
                return Err(Errno::EINVAL);
            }
            settings.no_new_privs.store(true, order);
        }
        PR_SET_THP_DISABLE => {
            if more {
                return Err(Errno::EINVAL);
            }
            process::current().mm().allow_large(arg2 == 0);
        }
        PR_SET_SECCOMP => super::seccomp::set_mode(arg2, arg3)?,
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// The options that tell such a setting: the answer, or `None` for others.
fn get_setting(option: i32, arg2: u64, more: bool) -> Result<Option<i64>> {
    let task = process::current();
    let (settings, process) = (&task.settings, task.process());
    // Relaxed throughout: as in `set_setting`.
    let order = Ordering::Relaxed;
    Ok(Some(match option {
        PR_GET_PDEATHSIG => {
            UserPtr::new(arg2).write(&settings.parent_death_signal.load(order))?;
            0
        }
        PR_MCE_KILL_GET if arg2 != 0 || more => return Err(Errno::EINVAL),
        PR_MCE_KILL_GET => i64::from(PR_MCE_KILL_DEFAULT - settings.mce_kill.load(order)),
        PR_GET_DUMPABLE => i64::from(process.dumpable.load(order)),
        PR_GET_THP_DISABLE => {
            if arg2 != 0 || more {
                return Err(Errno::EINVAL);
            }
            i64::from(!process::current().mm().allows_large())
        }
        PR_GET_SECCOMP => super::seccomp::mode(),
        PR_GET_TSC => {
            let may = if task.forbids_tsc() { PR_TSC_SIGSEGV } else { PR_TSC_ENABLE };
            UserPtr::new(arg2).write(&may)?;
            0
        }
        PR_GET_NAME => {
            user::write_bytes(arg2, &task.comm())?;
            0
        }
        PR_GET_TIMERSLACK => match settings.timer_slack.load(order) {
            0 => TIMER_SLACK as i64,
            slack => slack as i64,
        },
        PR_GET_CHILD_SUBREAPER => {
            UserPtr::new(arg2).write(&i32::from(process.child_subreaper.load(order)))?;
            0
        }
        PR_GET_NO_NEW_PRIVS => {
            if arg2 != 0 || more {
                return Err(Errno::EINVAL);
            }
            i64::from(settings.no_new_privs.load(order))
        }
        _ => return Ok(None),
    }))
}

/// What `personality` reads without changing.
const PERSONALITY_QUERY: u32 = 0xffff_ffff;

pub fn personality(new: u32) -> Result<i64> {
    // Relaxed: a single setting of the running task.
    let order = Ordering::Relaxed;
    let setting = &process::current().settings.personality;
    let old = match new {
        PERSONALITY_QUERY => setting.load(order),
        _ => setting.swap(new, order),
    };
    Ok(i64::from(old))
}

pub fn getcpu(cpu_out: UserPtr<u32>, node_out: UserPtr<u32>) -> Result<()> {
    if let Some(out) = cpu_out.non_null() {
        out.write(&(percpu::cpu_id() as u32))?;
    }
    match node_out.non_null() {
        Some(out) => out.write(&0),
        None => Ok(()),
    }
}
