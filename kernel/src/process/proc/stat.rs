//! /proc/PID/stat: 52 numbers on one line.

use super::shown::{name, state, thread_count};
use crate::fs::procfs::Row;
use crate::mm::fallible::TrySlice;
use crate::process::task::limits::Resource;
use crate::process::task::task::Task;
use crate::process::timers::times::Usage;
use crate::process::tree::terminal;
use abi::Result;
use alloc::vec::Vec;

/// Longest line: a name and its number, a letter, and 49 numbers, each behind a blank.
const LONGEST: usize = 11 + 18 + 4 + 49 * 21;

/// Nanoseconds in a clock tick.
const TICK_NS: u64 = 10_000_000;

/// The line. In a process directory times and counts are of all threads.
pub(super) fn text(task: &Task, in_task: bool) -> Result<Vec<u8>> {
    let process = task.process();
    let usage = if in_task { task.times.usage() } else { process.usage() };
    let children = process.children_usage();
    let id = if in_task { task.tid() } else { process.pid() };
    let mut row = Row::<LONGEST>::new();
    row.decimal(id.unsigned_abs().into(), 0);
    row.put(*b" (");
    row.text(&name(task));
    row.put(*b") ");
    row.put([state(task).0 as u8]);
    for value in identity(task) {
        row.put(*b" ");
        row.signed(value);
    }
    unsigned(&mut row, times(&usage, &children));
    for value in [priority(task), task.sched.nice().into(), thread_count(process) as i64, 0] {
        row.put(*b" ");
        row.signed(value);
    }
    unsigned(&mut row, [task.times.start_ns() / TICK_NS]);
    let open = crate::process::ptrace::access::may_look_into(task);
    unsigned(&mut row, memory(task, open));
    unsigned(&mut row, signals_and_rest(task, open));
    row.put(*b"\n");
    row.bytes().try_owned()
}

fn unsigned<const COUNT: usize>(row: &mut Row<LONGEST>, values: [u64; COUNT]) {
    for value in values {
        row.put(*b" ");
        row.decimal(value, 0);
    }
}

/// Parent, group, session, terminal, its foreground group, flags.
fn identity(task: &Task) -> [i64; 6] {
    let process = task.process();
    let group = process.group();
    let terminal = terminal::terminal_of(process);
    let (device, foreground) = terminal.map_or((0, -1), |tty| {
        let device = tty.dev();
        let group = tty.foreground_group().map_or(0, |group| group.number);
        (i64::from(encode(device.major(), device.minor())), i64::from(group))
    });
    let kernel_thread = if task.is_kernel_thread() { 0x0020_0000 } else { 0 };
    let flags = kernel_thread | if process.is_exiting() { 4 } else { 0 } | 0x0040_0000;
    [
        process.ppid().into(),
        group.pgid().into(),
        group.session().sid().into(),
        device,
        foreground,
        flags,
    ]
}

/// Linux's packed device number.
fn encode(major: u32, minor: u32) -> u32 {
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

fn times(usage: &Usage, children: &Usage) -> [u64; 8] {
    [
        usage.minor_faults,
        children.minor_faults,
        usage.major_faults,
        children.major_faults,
        usage.utime_ns / TICK_NS,
        usage.stime_ns / TICK_NS,
        children.utime_ns / TICK_NS,
        children.stime_ns / TICK_NS,
    ]
}

/// 20 plus the nice value, or -1 minus the real-time priority.
fn priority(task: &Task) -> i64 {
    match task.sched.policy().priority {
        0 => 20 + i64::from(task.sched.nice()),
        priority => -1 - i64::from(priority),
    }
}

/// Sizes and addresses: vsize, rss, its limit, code, stack, and the user's registers (hidden, as on Linux). Where things
/// lie is told to who may look into the process (`open`).
fn memory(task: &Task, open: bool) -> [u64; 8] {
    let process = task.process();
    let usage = process.mm().map(|mm| mm.usage()).unwrap_or_default();
    let program = process.program().filter(|_| open);
    // As on Linux, 1 where they are hidden.
    let hidden = if open { 0 } else { 1 };
    let [start_code, end_code, ..] = program.as_ref().map_or([hidden; 4], |p| p.bounds);
    [
        usage.size * crate::base::PAGE_SIZE as u64,
        usage.rss_anon + usage.rss_file + usage.rss_shmem,
        process.limits().soft(Resource::Rss),
        start_code,
        end_code,
        program.map_or(0, |p| p.stack_start),
        0,
        0,
    ]
}

fn signals_and_rest(task: &Task, open: bool) -> [u64; 22] {
    let process = task.process();
    let (ignored, caught) = process.signals.actions().sets();
    let program = process.program().filter(|_| open);
    let [_, _, start_data, end_data] = program.as_ref().map_or([0; 4], |p| p.bounds);
    let (args, env) = program.as_ref().map_or(((0, 0), (0, 0)), |p| (p.args, p.env));
    let policy = task.sched.policy();
    let exit_signal = process.exit_signal_number();
    [
        task.signals.pending().0 & 0x7fff_ffff,
        task.signals.blocked().0 & 0x7fff_ffff,
        ignored.0 & 0x7fff_ffff,
        caught.0 & 0x7fff_ffff,
        u64::from(!matches!(state(task).0, 'R' | 'Z')),
        0,
        0,
        exit_signal,
        task.sched.cpu() as u64,
        policy.priority.into(),
        policy.policy.into(),
        0,
        0,
        0,
        start_data,
        end_data,
        program.as_ref().map_or(0, |p| p.brk_start),
        args.0,
        args.1,
        env.0,
        env.1,
        if open { process.exit_status().raw().into() } else { 0 },
    ]
}
