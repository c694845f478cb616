//! `cargo xtask runtimes`: the own tests of Go's standard library, of Python and of Linux, on Linux and on Alea.
//!
//! Each unit (a Go package, a Python module, a self test of Linux, a script) runs in a guest of each kernel from one initramfs, and
//! the results are compared test for test. Differences that are known stand in `tests/runtimes/known.toml`
//! with a reason; any other fails, and so does one that has gone away.

mod go;
mod linux;
mod programs;
mod python;
mod report;
mod verdicts;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::NamedTempFile;

use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::results::{Case, Verdict};
use xtask_shards::share::ShardArgs;
use xtask_shards::stopwatch::Stopwatch;

/// Longer than the guest's own limit for one unit.
const SILENCE: Duration = Duration::from_secs(1600);

/// Runs the own tests of Go, Python and Linux on Linux and Alea, and compares them.
#[derive(Args)]
pub struct Runtimes {
    /// Units, like go:net, python:test_os or linux:seccomp_bpf, or `go`, `python`, `linux`, `script` for all of a kind; default: all
    units: Vec<String>,
    /// Run on this kernel only, and print what every test gave: `alea` or `linux`
    #[arg(long, value_name = "alea|linux", conflicts_with_all = ["shard", "results"])]
    only: Option<String>,
    /// Only tests of these names: go's -test.run, python's -m
    #[arg(long, value_name = "PATTERN")]
    tests: Option<String>,
    /// Keep what the guests print in this folder, as it comes
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Do not boot Linux: take what it printed in an earlier run from this file of `--logs`
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    linux: Option<PathBuf>,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

/// A serial line that is timed and kept.
struct Both {
    stopwatch: Stopwatch,
    file: File,
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(bytes)?;
        self.stopwatch.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Gives what a guest's serial line is copied to.
type Log = Box<dyn FnMut() -> Result<Box<dyn Write + Send>>>;

/// Test name to verdict, by unit.
type Results = BTreeMap<String, BTreeMap<String, String>>;

impl Runtimes {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        let share = self.shards.share(&self.line(&self.units), &self.chosen()?)?;
        let units = share.units.clone();
        if units.is_empty() {
            return share.finish(Vec::new());
        }
        let machine = self.roomy()?;
        let archive = NamedTempFile::new_in(paths::alea())?;
        write_initramfs(&units, self.tests.as_deref(), archive.path())?;
        let initrd = archive.path();
        let kernels: &[&str] = match self.only.as_deref() {
            None => &["linux", "alea"],
            Some("linux") => &["linux"],
            Some("alea") => &["alea"],
            Some(other) => bail!("--only takes alea or linux, not {other}"),
        };
        let stopwatch = Stopwatch::new("=== unit ");
        let mut results = Vec::new();
        for name in kernels {
            let output = match (&self.linux, *name) {
                (Some(file), "linux") => {
                    fs::read_to_string(file).with_context(|| paths::shown(file))?
                }
                _ => {
                    let log = self.log(name, &stopwatch)?;
                    run_units(&machine, self.kernel(name)?, initrd, &units, log)?
                }
            };
            let mut found = verdicts::parse(&output);
            found.retain(|unit, _| units.contains(unit));
            results.push(found);
        }
        stopwatch.stop();
        match results.as_slice() {
            [linux, alea] => {
                let compared = report::compare(linux, alea, &known()?);
                let code = share.finish(self.cases(&compared, &stopwatch))?;
                Ok(if compared.is_good { code } else { ExitCode::FAILURE })
            }
            [alone] => Ok(report::list(alone)),
            _ => Ok(ExitCode::FAILURE),
        }
    }

    /// A case for each unit, which took what both kernels took.
    fn cases(&self, compared: &report::Compared, stopwatch: &Stopwatch) -> Vec<Case> {
        let seconds = stopwatch.seconds();
        let case = |(unit, (verdict, message)): (&String, &(Verdict, String))| {
            let seconds = seconds.get(unit).copied().unwrap_or_default();
            Case::of(unit, *verdict, seconds, message, &self.line(std::slice::from_ref(unit)))
        };
        compared.units.iter().map(case).collect()
    }

    /// The command that runs those units, with the same options.
    fn line(&self, units: &[String]) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "runtimes".into()];
        words.extend_from_slice(units);
        if let Some(tests) = &self.tests {
            words.extend(["--tests".into(), tests.clone()]);
        }
        words.extend(self.machine.words());
        words.extend(self.build.words());
        process::line(words)
    }

    /// The machine, with room for the tests unless its memory was chosen.
    fn roomy(&self) -> Result<Machine> {
        let machine = self.machine.machine()?;
        Ok(if self.machine.memory.is_none() { machine.memory("2G") } else { machine })
    }

    fn kernel(&self, name: &str) -> Result<PathBuf> {
        if name == "linux" {
            setup::ensure(&[Need::Linux])?;
            return Ok(paths::vmlinuz());
        }
        build::build(self.build)?;
        Ok(paths::kernel())
    }

    /// Where the guest of a kernel prints to.
    fn log(&self, name: &str, stopwatch: &Stopwatch) -> Result<Log> {
        let stopwatch = stopwatch.clone();
        let Some(folder) = &self.logs else {
            return Ok(Box::new(move || Ok(Box::new(stopwatch.clone()))));
        };
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join(format!("{name}.txt")))?;
        Ok(Box::new(move || {
            let (stopwatch, file) = (stopwatch.clone(), file.try_clone()?);
            Ok(Box::new(Both { stopwatch, file }))
        }))
    }

    fn chosen(&self) -> Result<Vec<String>> {
        let all: Vec<String> = go::PACKAGES
            .iter()
            .map(|name| format!("go:{name}"))
            .chain(python::MODULES.iter().map(|name| format!("python:{name}")))
            .chain(programs::UNITS.iter().map(|(unit, _)| (*unit).to_owned()))
            .chain(linux::units())
            .chain(python::SCRIPTS.iter().map(|name| format!("script:{name}")))
            .collect();
        for asked in &self.units {
            if !all.iter().any(|unit| matches(unit, asked)) {
                bail!("there is no unit {asked}; there are {}", all.join(" "));
            }
        }
        let chosen = |unit: &String| {
            self.units.is_empty() || self.units.iter().any(|asked| matches(unit, asked))
        };
        Ok(all.into_iter().filter(chosen).collect())
    }
}

/// Whether a unit is the one asked for, or of the kind asked for.
fn matches(unit: &str, asked: &str) -> bool {
    unit == asked || unit.split(':').next() == Some(asked)
}

fn write_initramfs(units: &[String], tests: Option<&str>, file: &Path) -> Result<()> {
    let mut tree = Tree::with_busybox()?;
    tree.host_file("usr/lib/alea/runtimes", 0o755, &paths::source("tests/runtimes/run.sh"))?;
    if let Some(tests) = tests {
        tree.file("etc/runtimes", 0o644, tests);
    }
    tree.file(
        "etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    );
    tree.file("etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n");
    tree.file("etc/hosts", 0o644, "127.0.0.1 localhost guest\n::1 localhost ip6-localhost\n");
    tree.file(
        "etc/services",
        0o644,
        "echo 7/tcp\necho 7/udp\nssh 22/tcp\ntelnet 23/tcp\ndomain 53/udp\nhttp 80/tcp\n",
    );
    tree.file(
        "etc/protocols",
        0o644,
        "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n",
    );
    tree.file("etc/nsswitch.conf", 0o644, "hosts: files dns\nservices: files\nprotocols: files\n");
    if units.iter().any(|unit| unit.starts_with("go:")) {
        go::add(&mut tree, units)?;
    }
    programs::add(&mut tree, units)?;
    linux::add(&mut tree, units)?;
    if units.iter().any(|unit| unit.starts_with("python:") || unit.starts_with("script:")) {
        python::add(&mut tree)?;
    }
    fs::write(file, tree.archive()).with_context(|| paths::shown(file))
}

/// Runs units on a kernel and gives all that the guest printed. A unit that takes the kernel down ends the
/// run for itself only: the rest is run in a new guest.
fn run_units(
    machine: &Machine,
    kernel: PathBuf,
    initrd: &Path,
    units: &[String],
    mut log: Log,
) -> Result<String> {
    let mut all = String::new();
    let mut left = units;
    while !left.is_empty() {
        let line = format!(
            "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check rdinit=/usr/lib/alea/runtimes runtimes={}",
            left.join(",")
        );
        let machine = machine.clone().direct(&kernel, Some(initrd.to_owned()), &line);
        let outcome = Guest::start_echoing(&machine, log()?)?.finish(Limits::idle(SILENCE))?;
        all.push_str(&outcome.output);
        let begun = outcome.output.lines().filter(|line| line.starts_with("=== unit ")).count();
        if outcome.end == End::Exited(0) && outcome.output.contains("=== end") {
            break;
        }
        if begun == 0 {
            bail!("{}", outcome.describe());
        }
        all.push_str(&format!("\n--- exit the guest ended: {:?}\n", outcome.end));
        left = &left[begun.min(left.len())..];
    }
    Ok(all)
}

/// Known differences: reason by test, by unit.
fn known() -> Result<Results> {
    let file = paths::source("tests/runtimes/known.toml");
    let text = fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
    toml::from_str(&text).with_context(|| paths::shown(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        runtimes: Runtimes,
    }

    #[test]
    fn memory_is_what_was_asked_for() {
        let memory = |words: &[&str]| {
            let words = ["runtimes", "--accel", "tcg"].iter().chain(words);
            let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
            line.runtimes.roomy().unwrap().memory
        };
        assert_eq!(memory(&[]), "2G");
        assert_eq!(memory(&["--memory", "1G"]), "1G");
    }
}
