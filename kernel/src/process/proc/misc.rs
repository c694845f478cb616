//! The small files of a process directory.
//!
//! Owns the number of the last login session. Never changes another task's login. Locks: none of its own.

use super::shown::name;
use crate::fs::procfs::by_prefix;
use crate::mm::fallible::{TryCollect, TryGrow, TrySlice, TryVec, try_string};
use crate::mm::frames::inject;
use crate::process::memory::oom;
use crate::process::task::current::current;
use crate::process::task::limits::{self, Resource};
use crate::process::task::process::{Process, Program};
use crate::process::task::task::{Login, Task};
use crate::process::timers::times::Moved;
use crate::process::watch;
use crate::vfs::Capability;
use crate::{try_format, try_writeln};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// Most bytes of arguments or environment that are shown.
const MAX_STRINGS: u64 = 8 << 20;

/// The text of one.
pub(super) fn text(task: &Task, in_task: bool, name_of_file: &str) -> Result<Vec<u8>> {
    let process = task.process();
    // Relaxed throughout: settings.
    let order = Ordering::Relaxed;
    Ok(match name_of_file {
        "comm" => {
            let mut text = name(task).try_owned()?;
            text.try_push(b'\n')?;
            text
        }
        "cmdline" => strings(task, |program| program.args)?,
        "environ" => strings(task, |program| program.env)?,
        "auxv" => auxv(process)?,
        "limits" => limits_text(process)?.into_bytes(),
        "oom_score" => try_format!("{}\n", oom::score(process))?.into_bytes(),
        "oom_score_adj" => try_format!("{}\n", process.oom_adjustment.get())?.into_bytes(),
        "oom_adj" => {
            try_format!("{}\n", oom_adj(i32::from(process.oom_adjustment.get())))?.into_bytes()
        }
        "personality" => {
            try_format!("{:08x}\n", task.settings.personality.load(order))?.into_bytes()
        }
        "wchan" => b"0".try_owned()?,
        "stack" => Vec::new(),
        "syscall" => syscall(task)?.into_bytes(),
        "schedstat" => {
            let usage = task.times.usage();
            let switches = usage.voluntary.saturating_add(usage.involuntary);
            try_format!("{} 0 {switches}\n", task.times.cpu_ns())?.into_bytes()
        }
        "loginuid" => try_format!("{}", task.settings.login.uid.load(order))?.into_bytes(),
        "sessionid" => try_format!("{}", task.settings.login.session.load(order))?.into_bytes(),
        "cgroup" => b"0::/\n".try_owned()?,
        "io" => io(task, in_task)?.into_bytes(),
        // There is one name space of users, and it maps each to itself.
        "uid_map" | "gid_map" | "projid_map" => {
            b"         0          0 4294967295\n".try_owned()?
        }
        "setgroups" => b"allow\n".try_owned()?,
        "timerslack_ns" if !may_see_slack(task) => return Err(Errno::EPERM),
        "timerslack_ns" => match task.settings.timer_slack.load(order) {
            0 => b"50000\n".try_owned()?,
            slack => try_format!("{slack}\n")?.into_bytes(),
        },
        "alea/fail_nth" => try_format!("{}\n", task.settings.fail_nth.load(order))?.into_bytes(),
        "coredump_filter" => {
            try_format!("{:08x}\n", process.coredump_filter.load(order))?.into_bytes()
        }
        _ => return Err(Errno::EINVAL),
    })
}

/// Whether the slack of a task's timers may be read and set: its own, or that of all with CAP_SYS_NICE.
fn may_see_slack(task: &Task) -> bool {
    core::ptr::eq(task, &*current()) || current().cred().capable(Capability::SYS_NICE)
}

/// Takes a write to one.
pub(super) fn write(task: &Task, name_of_file: &str, data: &[u8]) -> Result<usize> {
    match name_of_file {
        "comm" => {
            if !core::ptr::eq(&**task.process(), &**current().process()) {
                return Err(Errno::EINVAL);
            }
            // As on Linux, a newline is part of the name.
            task.set_comm(data.split(|&b| b == 0).next().unwrap_or(&[]));
        }
        "oom_score_adj" => task.process().oom_adjustment.set(number(data)?, may_lower())?,
        "oom_adj" => task.process().oom_adjustment.set_legacy(number(data)?, may_lower())?,
        "timerslack_ns" => {
            if !may_see_slack(task) {
                return Err(Errno::EPERM);
            }
            let slack = u64::try_from(number(data)?).map_err(|_| Errno::EINVAL)?;
            // Relaxed: a setting.
            task.settings.timer_slack.store(slack, Ordering::Relaxed);
        }
        // Only of a name space of its own.
        "uid_map" | "gid_map" | "projid_map" => return Err(Errno::EPERM),
        // What the first name space of users allows cannot be taken back.
        "setgroups" => match data.trim_ascii_end() {
            b"allow" => {}
            b"deny" => return Err(Errno::EPERM),
            _ => return Err(Errno::EINVAL),
        },
        "loginuid" => set_login(task, unsigned(data, 10)?)?,
        "alea/syscalls" => match data.trim_ascii() {
            b"1" => watch::set_process(task.process(), true)?,
            b"0" => watch::set_process(task.process(), false)?,
            _ => return Err(Errno::EINVAL),
        },
        "alea/fail_nth" => name_failing(task, unsigned(data, 10)?)?,
        "coredump_filter" => {
            // Relaxed: a setting.
            let filter = unsigned(data, 0)? & COREDUMP_FILTER_BITS;
            task.process().coredump_filter.store(filter, Ordering::Relaxed);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(data.len())
}

/// For tests: of the allocations that the caller asks for from now on the `nth` fails, none for 0. EOPNOTSUPP without `alea.fail_alloc`.
fn name_failing(task: &Task, nth: u32) -> Result<()> {
    if !inject::on() {
        return Err(Errno::EOPNOTSUPP);
    }
    if !core::ptr::eq(task, &*current()) {
        return Err(Errno::EPERM);
    }
    // Relaxed: only the thread itself counts.
    task.settings.fail_nth.store(nth, Ordering::Relaxed);
    Ok(())
}

/// `MMF_DUMP_FILTER_BITS` of them.
const COREDUMP_FILTER_BITS: u32 = 0x1ff;

/// A task says who it is, once; who may control audits says it again. Each time another session begins.
fn set_login(task: &Task, uid: u32) -> Result<()> {
    /// Of the last session.
    static SESSION: AtomicU32 = AtomicU32::new(0);
    let caller = current();
    if !core::ptr::eq(task, &*caller) {
        return Err(Errno::EPERM);
    }
    // Relaxed throughout: settings of the caller.
    let order = Ordering::Relaxed;
    let login = &task.settings.login;
    if login.uid.load(order) != Login::NOBODY && !caller.cred().capable(Capability::AUDIT_CONTROL) {
        return Err(Errno::EPERM);
    }
    let session = match uid {
        Login::NOBODY => Login::NOBODY,
        _ => SESSION.fetch_add(1, order).wrapping_add(1),
    };
    login.session.store(session, order);
    login.uid.store(uid, order);
    Ok(())
}

/// A number as Linux's `kstrtouint` reads it: no space but a newline at the end; a base of 0 is told by its first digits.
fn unsigned(data: &[u8], base: u32) -> Result<u32> {
    let text = core::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = if base == 0 { by_prefix(text) } else { (text, base) };
    if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(base)) {
        return Err(Errno::EINVAL);
    }
    u32::from_str_radix(digits, base).map_err(|_| Errno::ERANGE)
}

/// Whether the caller may lower a process's `oom_score_adj`.
fn may_lower() -> bool {
    current().cred().capable(Capability::SYS_RESOURCE)
}

fn number(data: &[u8]) -> Result<i64> {
    let text = core::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
    text.trim().parse().map_err(|_| Errno::EINVAL)
}

/// The old scale of -17 to 15.
fn oom_adj(score: i32) -> i32 {
    if score == 1000 { 15 } else { score * 17 / 1000 }
}

/// The bytes of the process's memory between two addresses.
fn strings(task: &Task, place: fn(&Program) -> (u64, u64)) -> Result<Vec<u8>> {
    let process = task.process();
    // A program and its own memory: at its places another's has anything.
    let steady = process.steady();
    let Some((program, mm)) = process.program().zip(task.mm_arc()) else { return Ok(Vec::new()) };
    drop(steady);
    let (start, end) = place(&program);
    let len = end.saturating_sub(start).min(MAX_STRINGS) as usize;
    let mut text = Vec::new();
    text.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    text.try_resize(len, 0)?;
    let got = mm.read_bytes(start, &mut text);
    text.truncate(got);
    Ok(text)
}

fn auxv(process: &Process) -> Result<Vec<u8>> {
    let Some(program) = process.program() else { return Ok(Vec::new()) };
    program.auxv().flatten().flat_map(u64::to_le_bytes).try_to_vec()
}

/// What was read and written by calls. No device was: files are in memory.
fn io(task: &Task, in_task: bool) -> Result<String> {
    let moved = if in_task { task.times.moved() } else { task.process().moved() };
    let Moved { read, written, reads, writes } = moved;
    try_format!(
        "rchar: {read}\nwchar: {written}\nsyscr: {reads}\nsyscw: {writes}\nread_bytes: 0\nwrite_bytes: 0\n\
         cancelled_write_bytes: 0\n"
    )
}

fn limits_text(process: &Process) -> Result<String> {
    let show = |value: u64| match value {
        limits::INFINITY => try_string("unlimited"),
        value => try_format!("{value}"),
    };
    let limits = process.limits();
    let (limit, soft, hard, units) = ("Limit", "Soft Limit", "Hard Limit", "Units");
    let mut text = try_format!("{limit:<25} {soft:<20} {hard:<20} {units:<10}\n")?;
    for which in Resource::all() {
        let (name, unit) = which.describe();
        let limit = limits.get(which);
        let (soft, hard) = (show(limit.soft)?, show(limit.hard)?);
        match unit {
            "" => try_writeln!(text, "{name:<25} {soft:<20} {hard:<20} ")?,
            unit => try_writeln!(text, "{name:<25} {soft:<20} {hard:<20} {unit:<10}")?,
        }
    }
    Ok(text)
}

fn syscall(task: &Task) -> Result<String> {
    if task.times.is_running() {
        return try_string("running\n");
    }
    let (pc, sp) = task.user_pc_sp();
    match task.user_call() {
        Some((number, args)) => {
            let [a, b, c, d, e, f] = args;
            try_format!("{number} {a:#x} {b:#x} {c:#x} {d:#x} {e:#x} {f:#x} {sp:#x} {pc:#x}\n")
        }
        None => try_format!("-1 {sp:#x} {pc:#x}\n"),
    }
}
