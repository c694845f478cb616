//! `cargo xtask bench`: the same guest program on Linux and on Alea, boots interleaved.
//!
//! Both kernels get the same initramfs, QEMU, CPU model and memory. Nothing is measured by this
//! program but the time from QEMU's start to the first user instruction.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::figures::{Figures, Samples};
use crate::growth::{self, Grown};
use crate::guest::{End, Guest, Limits};
use crate::qemu::{self, Accel, Machine, MachineArgs};
use crate::report::{self, BenchPart, Curve, Row, Spread};
use crate::setup::{self, Need};
use crate::table::{self, Table};
use crate::{baseline, build, paths, process, shown, symbolize, term};

/// The first line of the guest's init.
const MARKER: &str = "alea: first user instruction";

/// Seconds that a kernel gets to end its start before anything is measured.
const SETTLE: u32 = 3;

/// Measurements that are not the guest's own.
const BOOT: &str = "boot_to_user";
const MEMORY: &str = "memory_at_shell";

/// Boots Linux and Alea in turn, runs the same benchmarks on both, and compares.
#[derive(Args, Clone)]
pub struct Bench {
    /// Boots of each kernel
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only the benchmarks that match, such as `exec_*` or `getpid,pipe_*`
    #[arg(long, value_name = "GLOBS")]
    filter: Option<String>,
    /// A tenth of the work, once: for a first look
    #[arg(long)]
    quick: bool,
    /// Boot only one of the two
    #[arg(long, value_name = "KERNEL")]
    only: Option<Kernel>,
    /// The Linux to compare with; default: Debian's, from target/alea/linux/vmlinuz
    #[arg(long, value_name = "PATH")]
    linux: Option<PathBuf>,
    /// More words for Linux's command line, such as `mitigations=off`
    #[arg(long, value_name = "WORDS")]
    linux_append: Option<String>,
    /// Print JSON instead of the table (target/alea/bench.json is written either way)
    #[arg(long)]
    json: bool,
    /// The silence after which a guest is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    hang_after: u64,
    /// Also count instructions and growth, and write target/alea/report/index.html
    #[arg(long)]
    report: bool,
    /// Compare the instruction counts with tests/bench/baseline.json, as `cargo xtask ci` does
    #[arg(long)]
    check_baseline: bool,
    /// Measure the instruction counts and write tests/bench/baseline.json
    #[arg(long, conflicts_with = "check_baseline")]
    write_baseline: bool,
    /// Write the medians into docs/figures.toml and the pages that show them
    #[arg(long, conflicts_with = "quick")]
    write_figures: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// The design's goals for Alea's share of Linux's time, and of its instructions.
const GOALS: [(&str, f64, Option<f64>); 24] = [
    ("getpid", 0.5, Some(0.3)),
    ("getrandom_16", 0.4, Some(0.3)),
    ("getrandom_64k", 0.25, Some(0.3)),
    ("vdso_getrandom_16", 0.8, Some(0.8)),
    ("vdso_clock_gettime", 0.8, Some(0.8)),
    ("read_urandom_16", 0.5, Some(0.4)),
    ("fopen_urandom_16", 0.15, Some(0.15)),
    ("pipe_1", 0.5, Some(0.5)),
    ("ctx_switch", 0.5, Some(0.5)),
    ("signal_delivery", 0.5, Some(0.5)),
    ("mmap_touch_64", 0.5, Some(0.5)),
    ("open_close", 0.5, Some(0.5)),
    ("stat", 0.5, Some(0.5)),
    ("getdents_100", 0.5, Some(0.5)),
    ("poll_10", 0.5, Some(0.5)),
    ("poll_100", 0.5, Some(0.5)),
    ("select_10", 0.5, Some(0.5)),
    ("select_100", 0.5, Some(0.5)),
    ("fork_exit", 0.15, Some(0.10)),
    ("exec_true", 0.15, Some(0.10)),
    ("shell_noop", 0.20, Some(0.15)),
    ("pipe_grep", 0.25, Some(0.20)),
    ("sed_pipeline", 0.25, Some(0.20)),
    (BOOT, 0.15, None),
];

/// One of the two that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kernel {
    Linux,
    Alea,
}

impl Kernel {
    fn name(self) -> &'static str {
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
            linux_append: None,
            json: false,
            hang_after: 120,
            report: false,
            check_baseline: false,
            write_baseline: false,
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
        if self.only == Some(Kernel::Linux) {
            build::initramfs()?;
        } else {
            build::build(build::Options::SHIPPED)?;
        }
        let machine = self.machine.machine()?;
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

    /// Sets the figures that README shows: with two CPUs or a changed Linux only the ratio, in a column of its own.
    fn show(&self, both: &Both) -> Result<()> {
        let name = if self.machine.icount { "bench-instructions" } else { "bench-time" };
        let other = match (self.machine.smp, self.linux_append.as_deref()) {
            (1, None) => None,
            (2, None) => Some("two CPUs"),
            (1, Some(words)) => Some(words),
            _ => bail!("README shows no such figures"),
        };
        let mut figures = shown::Figures::load(paths::root())?;
        for (row, [linux, alea]) in rows(both) {
            if self.machine.icount && row == MEMORY {
                // The table of instructions has no sizes.
                continue;
            }
            let ratio = ratio(&linux, &alea).map_or(String::new(), |ratio| format!("{ratio:.3}"));
            match other {
                Some(column) => figures.set(name, &row, &[(column, ratio)])?,
                None => {
                    let [linux, alea] =
                        [linux, alea].map(|samples| self.format(&row, samples.median()));
                    let cells = [("Linux 6.12", linux), ("Alea", alea), ("Alea / Linux", ratio)];
                    figures.set(name, &row, &cells)?;
                }
            }
        }
        figures.write(paths::root())
    }

    /// The page, with what it needs beyond this run.
    fn write_report(&self, both: &Both, about: &Value) -> Result<()> {
        let mut part = BenchPart { about: sentence(about), ..BenchPart::default() };
        part.command = self.command();
        let rows = self.report_rows(both);
        if self.machine.icount {
            part.instructions = rows;
        } else {
            part.wall = rows;
            let counting = MachineArgs { icount: true, ..self.machine.clone() };
            let counting = Self { runs: 1, machine: counting, ..self.clone() };
            eprintln!("counting instructions");
            let both = counting.measure(&counting.machine.machine()?)?;
            part.instructions = counting.report_rows(&both);
        }
        part.growth = self.growth()?;
        println!("{}", paths::shown(&report::write_bench(&part)?));
        Ok(())
    }

    /// Cost against size and against CPUs.
    fn growth(&self) -> Result<Vec<Curve>> {
        let (most, cpus) =
            if self.quick { (100, &growth::CPUS[..2]) } else { (10_000, &growth::CPUS[..]) };
        let mut grown = [Grown::default(), Grown::default()];
        for kernel in self.kernels() {
            let (image, curves) = (self.image(kernel), &mut grown[kernel as usize]);
            let spinner = term::spinner(&format!("growth curves of {}", kernel.name()));
            curves.measure_sizes(&image, &self.machine.cpu, most)?;
            for &cpus in cpus {
                spinner.set_message(format!("growth curves of {}, {cpus} CPU(s)", kernel.name()));
                curves.measure_cpus(&image, &self.machine.cpu, cpus)?;
            }
            spinner.finish_and_clear();
        }
        Ok(growth::join(&grown[0], &grown[1]))
    }

    /// How to run this again.
    fn command(&self) -> String {
        let mut command = format!("cargo xtask bench --runs {}", self.runs);
        if self.machine.smp != 1 {
            command.push_str(&format!(" --smp {}", self.machine.smp));
        }
        if let Some(words) = &self.linux_append {
            command.push_str(&format!(" --linux-append '{words}'"));
        }
        if let Some(globs) = &self.filter {
            command.push_str(&format!(" --filter '{globs}'"));
        }
        command + " --report"
    }

    fn report_rows(&self, both: &Both) -> Vec<Row> {
        let spread = |samples: &Samples| {
            let median = samples.median()?;
            Some(Spread { median, samples: samples.values().to_vec() })
        };
        let row = |(name, [linux, alea]): (String, [Samples; 2])| Row {
            unit: self.unit(&name).into(),
            goal: self.goal(&name),
            linux: spread(&linux),
            alea: spread(&alea),
            name,
        };
        rows(both).into_iter().map(row).collect()
    }

    fn unit(&self, name: &str) -> &'static str {
        match name {
            MEMORY => "KiB",
            _ if self.machine.icount => "instructions",
            _ => "ns",
        }
    }

    fn image(&self, kernel: Kernel) -> PathBuf {
        match kernel {
            Kernel::Linux => self.linux(),
            Kernel::Alea => paths::kernel(),
        }
    }

    fn kernels(&self) -> Vec<Kernel> {
        match self.only {
            Some(kernel) => vec![kernel],
            None => vec![Kernel::Linux, Kernel::Alea],
        }
    }

    fn linux(&self) -> PathBuf {
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
        if let (Kernel::Linux, Some(words)) = (kernel, &self.linux_append) {
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

    fn format(&self, name: &str, value: Option<f64>) -> String {
        match value {
            None => "-".into(),
            Some(value) if name == MEMORY => format!("{:.1} MiB", value / 1024.0),
            Some(value) if self.machine.icount => table::count(value),
            Some(value) => table::time(value),
        }
    }

    /// The ratio that the design asks for.
    fn goal(&self, name: &str) -> Option<f64> {
        let (_, wall, instructions) = GOALS.iter().find(|(goal, ..)| *goal == name)?;
        if self.machine.icount { *instructions } else { Some(*wall) }
    }

    fn table(&self, both: &Both) -> Table {
        let mut table = Table::new(&[
            if self.machine.icount { "instructions" } else { "time" },
            "Linux",
            "min",
            "max",
            "Alea",
            "min",
            "max",
            "Alea/Linux",
            "goal",
        ]);
        for (name, [linux, alea]) in rows(both) {
            let mut cells = vec![name.clone()];
            for samples in [&linux, &alea] {
                for value in [samples.median(), samples.min(), samples.max()] {
                    cells.push(self.format(&name, value));
                }
            }
            cells.push(ratio(&linux, &alea).map_or("-".into(), |ratio| format!("{ratio:.3}")));
            cells.push(self.goal(&name).map_or(String::new(), |goal| format!("{goal:.2}")));
            table.row(cells);
        }
        table
    }

    fn caption(&self) -> String {
        format!(
            "medians over {} boot(s) of each; {} CPU(s), -cpu {}, {}{}{}",
            self.runs,
            self.machine.smp,
            self.machine.cpu,
            self.machine.memory,
            if self.machine.icount { ", -icount shift=0" } else { "" },
            self.linux_append
                .as_ref()
                .map_or(String::new(), |words| format!(", Linux with {words}")),
        )
    }

    fn report(&self, both: &Both, accel: Accel) -> Result<Value> {
        let results: Vec<Value> = rows(both)
            .into_iter()
            .map(|(name, [linux, alea])| {
                let unit = self.unit(&name);
                json!({
                    "name": name, "unit": unit, "ratio": ratio(&linux, &alea),
                    "goal": self.goal(&name),
                    "linux": summary(&linux), "alea": summary(&alea),
                })
            })
            .collect();
        let linux = (self.only != Some(Kernel::Alea)).then(|| linux_version(&self.linux()));
        Ok(json!({
            "date": process::output(Command::new("date").args(["-u", "+%FT%TZ"]))?.trim(),
            "host": { "cpu": host_cpu(), "cpus": std::thread::available_parallelism()?.get() },
            "qemu": qemu::version()?.to_string(),
            "machine": {
                "smp": self.machine.smp, "memory": self.machine.memory, "cpu": self.machine.cpu,
                "accel": accel, "icount": self.machine.icount,
            },
            "linux": linux.transpose()?,
            "linux_append": self.linux_append,
            "runs": self.runs,
            "results": results,
            "failures": { "linux": both[0].failures, "alea": both[1].failures },
            "skipped": { "linux": both[0].skipped, "alea": both[1].skipped },
        }))
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

/// Every measurement of either kernel, in the guest's order.
fn rows(both: &Both) -> Vec<(String, [Samples; 2])> {
    let mut names: Vec<&String> = Vec::new();
    for name in both.iter().flat_map(|figures| &figures.order) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let samples =
        |figures: &Figures, name: &String| figures.samples.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .map(|name| (name.clone(), [samples(&both[0], name), samples(&both[1], name)]))
        .collect()
}

fn ratio(linux: &Samples, alea: &Samples) -> Option<f64> {
    Some(alea.median()? / linux.median()?)
}

fn summary(samples: &Samples) -> Value {
    if samples.is_empty() {
        return Value::Null;
    }
    json!({
        "median": samples.median(), "min": samples.min(), "max": samples.max(), "samples": samples,
    })
}

/// The circumstances of a report, for people.
fn sentence(about: &Value) -> String {
    let text = |pointer: &str| match about.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".into(),
    };
    format!(
        "{}: {} boots of each kernel, interleaved, on {} CPU(s) of {} with {} under QEMU {} ({}); host {} \
         with {} CPUs; Linux {}{}.",
        text("/date"),
        text("/runs"),
        text("/machine/smp"),
        text("/machine/cpu"),
        text("/machine/memory"),
        text("/qemu"),
        text("/machine/accel"),
        text("/host/cpu"),
        text("/host/cpus"),
        text("/linux"),
        about["linux_append"].as_str().map_or(String::new(), |words| format!(" with {words}")),
    )
}

fn host_cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    line.map_or_else(|| "unknown".into(), |(_, model)| model.to_owned())
}

/// The version text in a bzImage: its offset, less 512, stands at 0x20e.
fn linux_version(image: &Path) -> Result<String> {
    let bytes = fs::read(image).with_context(|| image.display().to_string())?;
    let version = || {
        let field = bytes.get(0x20e..0x210)?;
        let at = usize::from(u16::from_le_bytes(field.try_into().ok()?)) + 0x200;
        let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Ok(version().unwrap_or_else(|| "unknown".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_what_either_kernel_measured() {
        let mut both = Both::default();
        both[0].add("getpid", 100.0);
        both[0].add("only_linux", 1.0);
        both[1].add("getpid", 25.0);
        both[1].add("only_alea", 1.0);
        let rows = rows(&both);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["getpid", "only_linux", "only_alea"]);
        assert_eq!(ratio(&rows[0].1[0], &rows[0].1[1]), Some(0.25));
        assert_eq!(ratio(&rows[1].1[0], &rows[1].1[1]), None);
    }

    #[test]
    fn the_version_of_a_bzimage_is_read() {
        let mut image = vec![0; 0x400];
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x30d].copy_from_slice(b"6.12.95 (x@y)");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &image).unwrap();
        assert_eq!(linux_version(file.path()).unwrap(), "6.12.95 (x@y)");
        fs::write(file.path(), b"short").unwrap();
        assert_eq!(linux_version(file.path()).unwrap(), "unknown");
    }
}
