//! /proc/PID/status: the same for people.

use super::memory::code_pages;
use super::shown::{name, state, thread_count};
use crate::mm::fallible::{TryGrow, TrySlice, TryVec};
use crate::process::signal::queued;
use crate::process::task::limits::Resource;
use crate::process::task::task::Task;
use crate::{try_write, try_writeln};
use abi::Result;
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
    let mut text = String::new();
    identity(task, &mut text)?;
    memory(task, &mut text)?;
    signals(task, &mut text)?;
    rest(task, &mut text)?;
    out.try_extend_from_slice(text.as_bytes())?;
    Ok(out)
}

fn identity(task: &Task, text: &mut String) -> Result<()> {
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
    try_writeln!(text, "Kthread:\t{}", u8::from(task.is_kernel_thread()))
}

fn memory(task: &Task, text: &mut String) -> Result<()> {
    let Some(mm) = task.mm_arc() else { return Ok(()) };
    let usage = mm.usage();
    let rss = usage.rss_anon + usage.rss_file + usage.rss_shmem;
    let mut line = |name: &str, pages: u64| try_writeln!(text, "{name}:\t{:8} kB", pages * 4);
    line("VmPeak", usage.peak.max(usage.size))?;
    line("VmSize", usage.size)?;
    line("VmLck", usage.locked)?;
    line("VmPin", 0)?;
    line("VmHWM", usage.rss_peak.max(rss))?;
    line("VmRSS", rss)?;
    line("RssAnon", usage.rss_anon)?;
    line("RssFile", usage.rss_file)?;
    line("RssShmem", usage.rss_shmem)?;
    line("VmData", usage.data)?;
    line("VmStk", usage.stack)?;
    let code = code_pages(task);
    line("VmExe", code)?;
    line("VmLib", usage.text.saturating_sub(code))?;
    line("VmPTE", usage.page_tables)?;
    line("VmSwap", 0)?;
    line("HugetlbPages", 0)?;
    let dumps = u8::from(task.process().is_dumping());
    try_writeln!(text, "CoreDumping:\t{dumps}\nTHP_enabled:\t0\nuntag_mask:\t0xffffffffffffffff")
}

fn signals(task: &Task, text: &mut String) -> Result<()> {
    let process = task.process();
    let (ignored, caught) = process.signals.actions().sets();
    let limit = process.limits().soft(Resource::SignalsPending);
    let uid = task.cred_arc().uid;
    try_writeln!(text, "Threads:\t{}\nSigQ:\t{}/{limit}", thread_count(process), queued(uid))?;
    try_writeln!(text, "SigPnd:\t{:016x}", task.signals.pending().0)?;
    try_writeln!(text, "ShdPnd:\t{:016x}", process.signals.pending().0)?;
    try_writeln!(text, "SigBlk:\t{:016x}", task.signals.blocked().0)?;
    try_writeln!(text, "SigIgn:\t{:016x}\nSigCgt:\t{:016x}", ignored.0, caught.0)
}

fn rest(task: &Task, text: &mut String) -> Result<()> {
    let cred = task.cred_arc();
    for (name, set) in [
        ("CapInh", cred.inheritable),
        ("CapPrm", cred.permitted),
        ("CapEff", cred.effective),
        ("CapBnd", cred.bounding),
        ("CapAmb", cred.ambient),
    ] {
        try_writeln!(text, "{name}:\t{:016x}", set.bits())?;
    }
    // Relaxed: a setting.
    let locked = task.settings.no_new_privs.load(Ordering::Relaxed);
    let (mode, filters) = (task.seccomp.mode() as u8, task.seccomp.count());
    try_writeln!(text, "NoNewPrivs:\t{}\nSeccomp:\t{mode}", u8::from(locked))?;
    try_writeln!(text, "Seccomp_filters:\t{filters}")?;
    let cpus = crate::base::percpu::cpus_online().min(64);
    let all = if cpus == 64 { u64::MAX } else { (1 << cpus) - 1 };
    let mask = task.sched.affinity() & all;
    try_writeln!(text, "Cpus_allowed:\t{mask:x}\nCpus_allowed_list:\t{}", list(mask)?)?;
    try_writeln!(text, "Mems_allowed:\t1\nMems_allowed_list:\t0")?;
    let usage = task.times.usage();
    try_writeln!(text, "voluntary_ctxt_switches:\t{}", usage.voluntary)?;
    try_writeln!(text, "nonvoluntary_ctxt_switches:\t{}", usage.involuntary)
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
