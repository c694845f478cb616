//! /proc's files about the machine: memory, CPUs, time, load.
//!
//! Owns nothing. Never waits. Locks: none of its own.
#![forbid(unsafe_code)]

use super::file::{Fixed, Text};
use super::fixed::register_file;
use super::process::{CpuTotals, Totals, processes};
use crate::arch::irq;
use crate::arch::smp::identity;
use crate::base::percpu;
use crate::mm::fallible::{TryCollect, TryString, TryVec, try_arc, written};
use crate::mm::frames::inject;
use crate::mm::{collapse, commit, frames, huge};
use crate::version::{RELEASE, VERSION};
use crate::{cmdline, time, try_format, try_write, try_writeln};
use abi::Result;
use abi::time::USER_HZ;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    let texts: [(&str, fn() -> Result<String>); 10] = [
        ("alea/fail_alloc", fail_alloc),
        ("meminfo", meminfo),
        ("cpuinfo", cpuinfo),
        ("uptime", uptime),
        ("loadavg", loadavg),
        ("stat", stat),
        ("vmstat", vmstat),
        ("cmdline", || try_format!("{}\n", cmdline::text())),
        ("interrupts", interrupts),
        ("version", || try_format!("Linux version {RELEASE} (alea@alea) (rustc) {VERSION}\n")),
    ];
    for (path, text) in texts {
        register_file(path, 0o444, try_arc(Text(text))?)?;
    }
    register_file(
        "swaps",
        0o444,
        try_arc(Fixed("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"))?,
    )?;
    Ok(())
}

/// Adds a line, or returns `ENOMEM`.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { try_writeln!($out, $($arg)*)? };
}

/// The figures of /proc/meminfo that are sizes, in KiB.
fn memory_sizes() -> [(&'static str, u64); 42] {
    const KIB_PER_PAGE: u64 = 4;
    let stats = frames::stats();
    let cached = stats.page_cache * KIB_PER_PAGE;
    let anon = stats.anon * KIB_PER_PAGE;
    let total = stats.total * KIB_PER_PAGE;
    let free = stats.free * KIB_PER_PAGE;
    [
        ("MemTotal", total),
        ("MemFree", free),
        // The page cache is the only copy of its files: none of it can be given up.
        ("MemAvailable", free),
        ("Buffers", 0),
        ("Cached", cached),
        ("SwapCached", 0),
        ("Active", anon + cached),
        ("Inactive", 0),
        ("Active(anon)", anon + cached),
        ("Inactive(anon)", 0),
        ("Active(file)", 0),
        ("Inactive(file)", 0),
        ("Unevictable", 0),
        ("Mlocked", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", anon),
        ("Mapped", 0),
        ("Shmem", cached),
        ("KReclaimable", 0),
        ("Slab", stats.slab * KIB_PER_PAGE),
        ("SReclaimable", 0),
        ("SUnreclaim", stats.slab * KIB_PER_PAGE),
        ("KernelStack", stats.kernel_stacks * KIB_PER_PAGE),
        ("PageTables", stats.page_tables * KIB_PER_PAGE),
        ("SecPageTables", 0),
        ("NFS_Unstable", 0),
        ("Bounce", 0),
        ("WritebackTmp", 0),
        ("CommitLimit", commit::limit() * KIB_PER_PAGE),
        ("Committed_AS", commit::promised() * KIB_PER_PAGE),
        ("VmallocTotal", 34_359_738_367),
        ("VmallocUsed", 0),
        ("VmallocChunk", 0),
        ("Percpu", 0),
        ("AnonHugePages", huge::stats().mapped * 2048),
        ("ShmemHugePages", 0),
        ("ShmemPmdMapped", 0),
        ("FileHugePages", 0),
        ("FilePmdMapped", 0),
    ]
}

fn meminfo() -> Result<String> {
    let mut out = String::new();
    let line = |out: &mut String, name: &str, kib: u64| {
        let pad = 15usize.saturating_sub(name.len());
        try_writeln!(out, "{name}:{:pad$}{kib:8} kB", "")
    };
    for (name, kib) in memory_sizes() {
        line(&mut out, name, kib)?;
    }
    for name in ["Total", "Free", "Rsvd", "Surp"] {
        put!(out, "HugePages_{name}: {:1$}{2:7}", "", 5 - name.len(), 0);
    }
    line(&mut out, "Hugepagesize", 2048)?;
    line(&mut out, "Hugetlb", 0)?;
    Ok(out)
}

fn cpuinfo() -> Result<String> {
    let mut out = String::new();
    for cpu in 0..percpu::cpus_online() {
        let block = written(|to| identity::write_cpuinfo(to, cpu, time::tsc_hz() / 1000))?;
        out.try_push_str(&block)?;
    }
    Ok(out)
}

fn totals() -> Result<Totals> {
    let mut totals = match processes() {
        Ok(processes) => processes.totals()?,
        Err(_) => Totals::default(),
    };
    totals.cpus.try_resize(percpu::cpus_online(), CpuTotals::default())?;
    Ok(totals)
}

fn uptime() -> Result<String> {
    let hundredths = |nanos: u64| (nanos / 1_000_000_000, nanos / 10_000_000 % 100);
    let (secs, part) = hundredths(time::since_boot_ns());
    let idle = totals()?.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.idle));
    let (idle_secs, idle_part) = hundredths(idle);
    Ok(try_format!("{secs}.{part:02} {idle_secs}.{idle_part:02}\n")?)
}

fn loadavg() -> Result<String> {
    let totals = totals()?;
    let mut out = String::new();
    for load in totals.load {
        try_write!(out, "{}.{:02} ", load / 100, load % 100)?;
    }
    put!(out, "{}/{} {}", totals.running, totals.tasks, totals.last_pid);
    Ok(out)
}

fn stat() -> Result<String> {
    const TICK: u64 = 1_000_000_000 / USER_HZ;
    let totals = totals()?;
    let mut out = String::new();
    let mut sum = CpuTotals::default();
    for cpu in &totals.cpus {
        sum.user = sum.user.saturating_add(cpu.user);
        sum.nice = sum.nice.saturating_add(cpu.nice);
        sum.system = sum.system.saturating_add(cpu.system);
        sum.idle = sum.idle.saturating_add(cpu.idle);
        sum.irq = sum.irq.saturating_add(cpu.irq);
    }
    let mut line = |name: &str, cpu: &CpuTotals| {
        let CpuTotals { user, nice, system, idle, irq } = cpu;
        let [user, nice, system, idle, irq] = [user, nice, system, idle, irq].map(|ns| ns / TICK);
        try_writeln!(out, "{name} {user} {nice} {system} {idle} 0 {irq} 0 0 0 0")
    };
    line("cpu ", &sum)?;
    for (number, cpu) in totals.cpus.iter().enumerate() {
        line(&try_format!("cpu{number}")?, cpu)?;
    }
    put!(out, "intr {}", irq::total());
    put!(out, "ctxt {}", totals.switches);
    let boot = time::realtime().secs().saturating_sub(time::monotonic().secs());
    put!(out, "btime {boot}");
    put!(out, "processes {}", totals.forks);
    put!(out, "procs_running {}", totals.running);
    put!(out, "procs_blocked {}", totals.blocked);
    put!(out, "softirq 0 0 0 0 0 0 0 0 0 0 0");
    Ok(out)
}

/// What the command line's `alea.fail_alloc` (failing allocations on purpose) has done.
fn fail_alloc() -> Result<String> {
    let inject::Counts { every, seed, asked, failed, frames } = inject::counts();
    let on = u8::from(inject::on());
    try_format!(
        "on {on}\nevery {every}\nseed {seed}\nasked {asked}\nfailed {failed}\nframes {frames}\n"
    )
}

fn vmstat() -> Result<String> {
    let stats = frames::stats();
    let large = huge::stats();
    let mut out = String::new();
    for (name, value) in [
        ("nr_free_pages", stats.free),
        ("nr_active_anon", stats.anon + stats.page_cache),
        ("nr_anon_pages", stats.anon),
        ("nr_file_pages", stats.page_cache),
        ("nr_shmem", stats.page_cache),
        ("nr_slab_unreclaimable", stats.slab),
        ("nr_page_table_pages", stats.page_tables),
        ("nr_kernel_stack", stats.kernel_stacks * 4),
        ("nr_anon_transparent_hugepages", large.mapped),
        ("pgpgin", 0),
        ("pgpgout", 0),
        ("pswpin", 0),
        ("pswpout", 0),
        ("thp_fault_alloc", large.made),
        ("thp_fault_fallback", large.fell_back),
        ("thp_split_pmd", large.opened),
        ("thp_collapse_alloc", collapse::counts().0),
    ] {
        put!(out, "{name} {value}");
    }
    Ok(out)
}

fn interrupts() -> Result<String> {
    let cpus = percpu::cpus_online();
    let mut out = try_format!("{:11}", "")?;
    (0..cpus).try_for_each(|cpu| try_write!(out, "CPU{cpu:<8}"))?;
    out.try_push_char('\n')?;
    let counts = |vector| (0..cpus).map(|cpu| irq::count(cpu, vector)).try_to_vec();
    let mut line = |name: &str, counts: Vec<u32>, what: &str| {
        try_write!(out, "{name:>3}: ")?;
        for count in counts {
            try_write!(out, "{count:10} ")?;
        }
        try_writeln!(out, "{what}")
    };
    for number in 0..irq::LINES as u8 {
        let counts = counts(irq::FIRST_LINE_VECTOR + number)?;
        if counts.iter().any(|&count| count != 0) {
            // The serial port is the only device of the ISA lines.
            let device = if number == 4 { "ttyS0" } else { "device" };
            let edge = if number < 16 { "edge" } else { "fasteoi" };
            let what = try_format!("  IO-APIC {number:3}-{edge:<8}  {device}")?;
            line(&try_format!("{number}")?, counts, &what)?;
        }
    }
    line("LOC", counts(irq::TIMER_VECTOR)?, "  Local timer interrupts")?;
    line("SPU", counts(irq::SPURIOUS_VECTOR)?, "  Spurious interrupts")?;
    line("RES", counts(irq::RESCHEDULE_VECTOR)?, "  Rescheduling interrupts")?;
    line("CAL", counts(irq::CALL_VECTOR)?, "  Function call interrupts")?;
    let errors: u64 = counts(irq::APIC_ERROR_VECTOR)?.iter().map(|&count| u64::from(count)).sum();
    put!(out, "{:>3}: {errors:10}", "ERR");
    Ok(out)
}
