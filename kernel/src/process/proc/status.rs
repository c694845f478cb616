//! /proc/PID/status: the same for people.

use super::memory::code_pages;
use super::shown::{name, state, thread_count};
use crate::fs::procfs::Row;
use crate::mm::fallible::{TryGrow, TrySlice, TryVec};
use crate::process::signal::queued;
use crate::process::task::limits::Resource;
use crate::process::task::task::Task;
use crate::{try_write, try_writeln};
use abi::Result;
use alea_speculation::predictors::{answer, which};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The text.
pub(super) fn text(task: &Task) -> Result<Vec<u8>> {
    let mut out = b"Name:\t".try_owned()?;
    for &byte in &name(task) {
        match byte {
            b'\n' => out.try_extend_from_slice(b"\\n")?,
            b'\\' => out.try_extend_from_slice(b"\\\\")?,
            byte => out.try_push(byte)?,
        }
    }
    out.try_extend_from_slice(identity(task)?.as_bytes())?;
    memory(task, &mut out)?;
    signals(task, &mut out)?;
    capabilities(task, &mut out)?;
    out.try_extend_from_slice(rest(task)?.as_bytes())?;
    Ok(out)
}

/// Adds a line: a name, and what `put` puts behind it, at most 25 bytes.
fn line(out: &mut Vec<u8>, name: &str, put: impl FnOnce(&mut Row<48>)) -> Result<()> {
    let mut row = Row::new();
    row.text(name.as_bytes());
    row.put(*b":\t");
    put(&mut row);
    row.put(*b"\n");
    out.try_extend_from_slice(row.bytes())
}

fn set(out: &mut Vec<u8>, name: &str, bits: u64) -> Result<()> {
    line(out, name, |row| row.hex(bits, 16))
}

fn identity(task: &Task) -> Result<String> {
    let mut text = String::new();
    let process = task.process();
    let cred = task.cred_arc();
    let (letter, word) = state(task);
    let umask = task.fs_arc().map_or(0o022, |fs| fs.umask());
    try_writeln!(
        text,
        "\nUmask:\t{umask:04o}\nState:\t{letter} ({word})\nTgid:\t{}",
        process.pid()
    )?;
    let tracer = task.tracing.tracer().map_or(0, |tracer| tracer.tid());
    try_writeln!(text, "Ngid:\t0\nPid:\t{}\nPPid:\t{}", task.tid(), process.ppid())?;
    try_writeln!(text, "TracerPid:\t{tracer}")?;
    try_writeln!(text, "Uid:\t{}\t{}\t{}\t{}", cred.uid, cred.euid, cred.suid, cred.fsuid)?;
    try_writeln!(text, "Gid:\t{}\t{}\t{}\t{}", cred.gid, cred.egid, cred.sgid, cred.fsgid)?;
    let slots = task.files_arc().map_or(0, |files| files.capacity());
    try_write!(text, "FDSize:\t{slots}\nGroups:\t")?;
    for (at, group) in cred.groups.iter().enumerate() {
        try_write!(text, "{}{group}", if at == 0 { "" } else { " " })?;
    }
    let group = process.group();
    try_writeln!(text, " \nNStgid:\t{}\nNSpid:\t{}", process.pid(), task.tid())?;
    try_writeln!(text, "NSpgid:\t{}\nNSsid:\t{}", group.pgid(), group.session().sid())?;
    try_writeln!(text, "Kthread:\t{}", u8::from(task.is_kernel_thread()))?;
    Ok(text)
}

fn memory(task: &Task, out: &mut Vec<u8>) -> Result<()> {
    let Some(mm) = task.mm_arc() else { return Ok(()) };
    let usage = mm.usage();
    let rss = usage.rss_anon + usage.rss_file + usage.rss_shmem;
    let mut kib = |name: &str, pages: u64| {
        line(out, name, |row| {
            row.decimal(pages * 4, 8);
            row.put(*b" kB");
        })
    };
    kib("VmPeak", usage.peak.max(usage.size))?;
    kib("VmSize", usage.size)?;
    kib("VmLck", usage.locked)?;
    kib("VmPin", 0)?;
    kib("VmHWM", usage.rss_peak.max(rss))?;
    kib("VmRSS", rss)?;
    kib("RssAnon", usage.rss_anon)?;
    kib("RssFile", usage.rss_file)?;
    kib("RssShmem", usage.rss_shmem)?;
    kib("VmData", usage.data)?;
    kib("VmStk", usage.stack)?;
    let code = code_pages(task);
    kib("VmExe", code)?;
    kib("VmLib", usage.text.saturating_sub(code))?;
    kib("VmPTE", usage.page_tables)?;
    kib("VmSwap", 0)?;
    kib("HugetlbPages", 0)?;
    let dumps = u8::from(task.process().is_dumping());
    line(out, "CoreDumping", |row| row.decimal(dumps.into(), 0))?;
    let large = u8::from(usage.allows_large);
    line(out, "THP_enabled", |row| row.decimal(large.into(), 0))?;
    out.try_extend_from_slice(b"untag_mask:\t0xffffffffffffffff\n")
}

fn signals(task: &Task, out: &mut Vec<u8>) -> Result<()> {
    let process = task.process();
    let (ignored, caught) = process.signals.actions().sets();
    let limit = process.limits().soft(Resource::SignalsPending);
    let uid = task.cred_arc().uid;
    line(out, "Threads", |row| row.decimal(thread_count(process) as u64, 0))?;
    line(out, "SigQ", |row| {
        row.decimal(queued(uid), 0);
        row.put(*b"/");
        row.decimal(limit, 0);
    })?;
    set(out, "SigPnd", task.signals.pending().0)?;
    set(out, "ShdPnd", process.signals.pending().0)?;
    set(out, "SigBlk", task.signals.blocked().0)?;
    set(out, "SigIgn", ignored.0)?;
    set(out, "SigCgt", caught.0)
}

fn capabilities(task: &Task, out: &mut Vec<u8>) -> Result<()> {
    let cred = task.cred_arc();
    set(out, "CapInh", cred.inheritable.bits())?;
    set(out, "CapPrm", cred.permitted.bits())?;
    set(out, "CapEff", cred.effective.bits())?;
    set(out, "CapBnd", cred.bounding.bits())?;
    set(out, "CapAmb", cred.ambient.bits())
}

fn rest(task: &Task) -> Result<String> {
    let mut text = String::new();
    // Relaxed: a setting.
    let locked = task.settings.no_new_privs.load(Ordering::Relaxed);
    let (mode, filters) = (task.seccomp.mode() as u8, task.seccomp.count());
    try_writeln!(text, "NoNewPrivs:\t{}\nSeccomp:\t{mode}", u8::from(locked))?;
    try_writeln!(text, "Seccomp_filters:\t{filters}")?;
    try_writeln!(text, "Speculation_Store_Bypass:\t{}", stores(task))?;
    try_writeln!(text, "SpeculationIndirectBranch:\t{}", branches(task))?;
    let cpus = crate::base::percpu::cpus_online().min(64);
    let all = if cpus == 64 { u64::MAX } else { (1 << cpus) - 1 };
    let mask = task.sched.affinity() & all;
    try_writeln!(text, "Cpus_allowed:\t{mask:x}\nCpus_allowed_list:\t{}", list(mask)?)?;
    try_writeln!(text, "Mems_allowed:\t1\nMems_allowed_list:\t0")?;
    let usage = task.times.usage();
    try_writeln!(text, "voluntary_ctxt_switches:\t{}", usage.voluntary)?;
    try_writeln!(text, "nonvoluntary_ctxt_switches:\t{}", usage.involuntary)?;
    Ok(text)
}

/// Whether its loads overtake stores.
fn stores(task: &Task) -> &'static str {
    const MINE: u64 = answer::PRCTL;
    match task.predictors(which::STORE_BYPASS).unwrap_or(answer::ENABLE) {
        answer::NOT_AFFECTED => "not vulnerable",
        answer if answer == MINE | answer::FORCE_DISABLE => "thread force mitigated",
        answer if answer == MINE | answer::DISABLE => "thread mitigated",
        answer if answer == MINE | answer::ENABLE => "thread vulnerable",
        answer::DISABLE => "globally mitigated",
        _ => "vulnerable",
    }
}

/// Whether its indirect branches are its own.
fn branches(task: &Task) -> &'static str {
    const MINE: u64 = answer::PRCTL;
    match task.predictors(which::INDIRECT_BRANCH).unwrap_or(answer::ENABLE) {
        answer::NOT_AFFECTED => "not affected",
        answer if answer == MINE | answer::FORCE_DISABLE => "conditional force disabled",
        answer if answer == MINE | answer::DISABLE => "conditional disabled",
        answer if answer == MINE | answer::ENABLE => "conditional enabled",
        answer::ENABLE => "always enabled",
        answer::DISABLE => "always disabled",
        _ => "unknown",
    }
}

/// `0-3,5` for a mask of CPUs.
pub(super) fn list(mask: u64) -> Result<String> {
    let mut text = String::new();
    let mut at = 0;
    while at < 64 {
        let run = (mask >> at).trailing_ones();
        if run > 0 {
            let comma = if text.is_empty() { "" } else { "," };
            let last = at + run - 1;
            match run {
                1 => try_write!(text, "{comma}{at}")?,
                _ => try_write!(text, "{comma}{at}-{last}")?,
            }
        }
        at += run.max(1);
    }
    Ok(text)
}
