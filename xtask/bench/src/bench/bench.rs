//! `cargo xtask bench`: the same guest program on Linux and on Alea, boots interleaved.
//!
//! Both kernels get the same initramfs, QEMU, CPU model and memory. Nothing is measured by this
//! program but the time from QEMU's start to the first user instruction.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use crate::baseline;
use crate::figures::Figures;
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::{paths, term};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::share::ShardArgs;

/// The first line of the guest's init.
const MARKER: &str = "alea: first user instruction";

/// Seconds that a kernel gets to end its start before anything is measured.
pub const SETTLE: u32 = 3;

/// Measurements that are not the guest's own.
pub(super) const BOOT: &str = "boot_to_user";
pub(super) const MEMORY: &str = "memory_at_shell";

/// Boots Linux and Alea in turn, runs the same benchmarks on both, and compares.
#[derive(Args, Clone)]
pub struct Bench {
    /// Boots of each kernel
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) runs: u32,
    /// Only the benchmarks that match, such as `exec_*` or `getpid,pipe_*`
    #[arg(long, value_name = "GLOBS")]
    pub(super) filter: Option<String>,
    /// A tenth of the work, once: for a first look
    #[arg(long)]
    pub(super) quick: bool,
    /// Boot only one of the two
    #[arg(long, value_name = "KERNEL")]
    pub(super) only: Option<Kernel>,
    /// The Linux to compare with; default: Debian's, from target/alea/linux/vmlinuz
    #[arg(long, value_name = "PATH")]
    pub(super) linux: Option<PathBuf>,
    /// The Alea to measure, such as an older one; default: that of the sources, built first
    #[arg(long, value_name = "PATH")]
    pub(super) alea: Option<PathBuf>,
    /// More words for Linux's command line, such as `mitigations=off`
    #[arg(long, value_name = "WORDS")]
    pub(super) linux_append: Option<String>,
    /// More words for Alea's command line, such as `random.generator=rdrand`
    #[arg(long, value_name = "WORDS")]
    pub(super) alea_append: Option<String>,
    /// Print JSON instead of the table (target/alea/bench.json is written either way)
    #[arg(long)]
    pub(super) json: bool,
    /// The silence after which a guest is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(super) hang_after: u64,
    /// Also count instructions and growth, and write target/alea/report/index.html
    #[arg(long, conflicts_with_all = ["shard", "results"])]
    pub(super) report: bool,
    /// Compare the instruction counts with tests/bench/baseline.json, as `cargo xtask ci` does
    #[arg(long, conflicts_with_all = ["shard", "results"])]
    pub(super) check_baseline: bool,
    /// Measure the instruction counts and write tests/bench/baseline.json
    #[arg(long, conflicts_with_all = ["check_baseline", "shard", "results"])]
    pub(super) write_baseline: bool,
    /// Write the medians into docs/figures.toml and the pages that show them
    #[arg(long, conflicts_with_all = ["quick", "shard", "results"])]
    pub(super) write_figures: bool,
    /// Count what hardware pays for: misses of caches and TLBs, locked and serialising instructions, exits to a hypervisor. Best
    /// with `--smp 2`: for one CPU Linux takes its locks out
    #[arg(long, conflicts_with_all = ["shard", "results", "report", "check_baseline", "write_baseline", "write_figures", "json", "runs"])]
    pub(super) model: bool,
    /// Programs that people run, from Debian, in counted instructions; `--filter` names parts: files, packages, databases, servers,
    /// languages, compiler
    #[arg(long, conflicts_with_all = ["shard", "results", "report", "check_baseline", "write_baseline", "json", "runs", "model", "quick", "only", "linux", "alea", "linux_append", "alea_append"])]
    pub(super) apps: bool,
    #[command(flatten)]
    pub(super) shards: ShardArgs,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
}

/// One of the two that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kernel {
    Linux,
    Alea,
}

impl Kernel {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Alea => "Alea",
        }
    }
}

/// What is measured of both; `[Linux, Alea]`.
pub type Both = [Figures; 2];

impl Bench {
    /// Only the instruction counts of some benchmarks, on one kernel.
    pub fn instructions_of(kernel: Kernel, names: &str, runs: u32, machine: &MachineArgs) -> Self {
        Self {
            runs,
            filter: Some(names.to_owned()),
            quick: false,
            write_figures: false,
            only: Some(kernel),
            linux: None,
            alea: None,
            linux_append: None,
            alea_append: None,
            json: false,
            hang_after: 120,
            report: false,
            check_baseline: false,
            write_baseline: false,
            model: false,
            apps: false,
            shards: ShardArgs::default(),
            machine: machine.clone(),
        }
    }

    pub fn run(self) -> Result<ExitCode> {
        let mut needs = vec![Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox];
        if self.linux.is_none() && self.only != Some(Kernel::Alea) {
            needs.push(Need::Linux);
        }
        setup::ensure(&needs)?;
        if self.check_baseline || self.write_baseline {
            let act = if self.check_baseline { baseline::check } else { baseline::write };
            return act().map(|()| ExitCode::SUCCESS);
        }
        if self.only == Some(Kernel::Linux) || self.alea.is_some() {
            build::initramfs()?;
        } else {
            build::build(build::Options::SHIPPED)?;
        }
        if self.model {
            return self.model();
        }
        if self.apps {
            build::shipped_kernel()?;
            let parts = self.filter.iter().flat_map(|parts| parts.split(','));
            let parts: Vec<String> = parts.map(str::to_owned).collect();
            return crate::apps::run(&parts, self.write_figures);
        }
        let machine = self.machine.machine()?;
        if self.shards.is_asked() {
            return self.part(&machine);
        }
        let both = self.measure(&machine)?;
        let report = self.report(&both, machine.accel)?;
        let file = paths::alea().join("bench.json");
        fs::write(&file, serde_json::to_string_pretty(&report)? + "\n")?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", self.table(&both).render());
            println!("{}", self.caption());
            eprintln!("all samples are in {}", paths::shown(&file));
        }
        let mut sound = true;
        for (kernel, figures) in [Kernel::Linux, Kernel::Alea].into_iter().zip(&both) {
            for skipped in &figures.skipped {
                eprintln!("note: {} skipped {skipped}", kernel.name());
            }
            for failure in &figures.failures {
                eprintln!("FAILED on {}: {failure}", kernel.name());
                sound = false;
            }
        }
        if !sound {
            bail!("figures of a run in which something failed are worth nothing");
        }
        if self.report {
            self.write_report(&both, &report)?;
        }
        if self.write_figures {
            self.show(&both)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn image(&self, kernel: Kernel) -> PathBuf {
        match kernel {
            Kernel::Linux => self.linux(),
            Kernel::Alea => self.alea.clone().unwrap_or_else(paths::kernel),
        }
    }

    pub(super) fn kernels(&self) -> Vec<Kernel> {
        match self.only {
            Some(kernel) => vec![kernel],
            None => vec![Kernel::Linux, Kernel::Alea],
        }
    }

    pub(super) fn linux(&self) -> PathBuf {
        self.linux.clone().unwrap_or_else(paths::vmlinuz)
    }

    /// All boots, A B A B, behind one bar.
    pub fn measure(&self, machine: &Machine) -> Result<Both> {
        let kernels = self.kernels();
        let bar = term::bar(u64::from(self.runs) * kernels.len() as u64, "");
        let mut both = Both::default();
        for run in 1..=self.runs {
            for kernel in &kernels {
                let title = format!("{}, run {run} of {}", kernel.name(), self.runs);
                if bar.is_hidden() {
                    eprintln!("{title} ...");
                }
                let machine = self.boots(machine, *kernel);
                self.boot_once(*kernel, &machine, &mut both[*kernel as usize], &bar, title)?;
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(both)
    }

    /// `machine` with `kernel` and the benchmark's command line.
    fn boots(&self, machine: &Machine, kernel: Kernel) -> Machine {
        let image = self.image(kernel);
        let mut line =
            format!("console=ttyS0 quiet rdinit=/usr/lib/alea/bench-init alea.settle={SETTLE}");
        if let Some(filter) = &self.filter {
            line.push_str(&format!(" alea.bench={filter}"));
        }
        if self.quick {
            line.push_str(" alea.bench_quick");
        }
        let words = match kernel {
            Kernel::Linux => &self.linux_append,
            Kernel::Alea => &self.alea_append,
        };
        if let Some(words) = words {
            line.push_str(&format!(" {words}"));
        }
        machine.clone().direct(image, Some(paths::initramfs()), &line)
    }

    fn boot_once(
        &self,
        kernel: Kernel,
        machine: &Machine,
        figures: &mut Figures,
        bar: &ProgressBar,
        title: String,
    ) -> Result<()> {
        bar.set_message(title.clone());
        let watcher = Watcher { bar: bar.clone(), title, line: Vec::new() };
        let mut guest = Guest::start_echoing(machine, watcher)?;
        let patience = Duration::from_secs(self.hang_after);
        let booted = guest.wait_for(MARKER, patience);
        let outcome = guest.finish(Limits::idle(patience))?;
        if outcome.end != End::Exited(0) {
            let image = machine.kernel().unwrap_or(Path::new(""));
            let report = symbolize::panic_report(image, &outcome.output);
            let report = report.unwrap_or_else(|| outcome.stuck_at(image));
            bail!("{} broke off: {}\n{report}", kernel.name(), outcome.describe());
        }
        figures.read(&outcome.output);
        // Host time says nothing about a guest whose clock counts instructions.
        if !self.machine.icount {
            figures.add(BOOT, booted?.as_secs_f64() * 1e9);
        }
        let memory = std::mem::take(&mut figures.memory);
        for (total, available) in memory {
            figures.add(MEMORY, total - available);
        }
        Ok(())
    }
}

/// Shows in the bar which benchmark the guest has just finished.
struct Watcher {
    bar: ProgressBar,
    title: String,
    line: Vec<u8>,
}

impl Write for Watcher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            if let Some(name) = line.strip_prefix("bench ").and_then(|rest| rest.split(' ').next())
            {
                self.bar.set_message(format!("{}: {name}", self.title));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
