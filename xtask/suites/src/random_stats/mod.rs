//! `cargo xtask random-stats`: what user space really reads, put through statistical tests.
//!
//! One boot sends the bytes of every interface to the host (`userland/random/randomstats.c`, over a virtio
//! channel); the tests are Debian's: rngtest (FIPS 140-2), ent and dieharder. The raw samples of the TSC's
//! jitter go through the estimators of NIST SP 800-90B, and what the kernel credits must stay below.
//!
//! No such test can show that a generator is good: SplitMix64 passes them all, and is broken by eight bytes
//! of its output. They find broken plumbing: repeated buffers, lost bytes, stuck bits.
//!
//! **False alarms.** Each verdict has a probability below 10^-5 of being wrong. An interface that fails is
//! drawn from once more and tested again: a broken one fails twice, a sound one fails twice in less than
//! one of 10^8 runs.

mod batteries;
pub mod estimators;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use batteries::{Dieharder, Ent, Rngtest};
use estimators::Estimate;

use xtask_guest::guest::{Guest, Limits};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_host::table::Table;
use xtask_host::{paths, term};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// Every interface that user space draws from, as `randomstats.c` calls them.
const INTERFACES: [&str; 4] = ["getrandom", "urandom", "random", "vdso"];

/// How much of each a check of every change takes.
const SAMPLE_MIB: u32 = 4;

/// Without a byte from the guest for so long, it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Tests the bytes that each interface delivers, and the raw jitter; reports to target/alea/random/.
#[derive(Args)]
pub struct RandomStats {
    /// How much of each interface
    #[arg(long, value_name = "MEBIBYTES", default_value_t = 256)]
    mib: u32,
    /// Leave dieharder out: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Start no further test of dieharder after so long, and say how many were run
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Leave the estimators for raw jitter out (they need a compiler and PyPI)
    #[arg(long)]
    no_jitter: bool,
    /// Only these interfaces
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    #[command(flatten)]
    machine: MachineArgs,
}

/// What the tests said of one interface.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub interface: String,
    pub bytes: u64,
    pub rngtest: Rngtest,
    pub ent: Ent,
    pub dieharder: Vec<Dieharder>,
    /// What is wrong; empty when nothing is.
    pub faults: Vec<String>,
    /// Whether a first sample had failed.
    pub second_try: bool,
}

/// All of it, as it is kept.
#[derive(Serialize)]
struct Report {
    cpu: String,
    verdicts: Vec<Verdict>,
    missing: Vec<String>,
    jitter: Option<Estimate>,
}

impl RandomStats {
    pub fn run(self) -> Result<ExitCode> {
        let mut needs = vec![Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox];
        needs.extend([Need::Rngtest, Need::Ent]);
        if !self.quick {
            needs.push(Need::Dieharder);
        }
        setup::ensure(&needs)?;
        build::build(build::Options::default())?;
        let folder = paths::alea().join("random");
        fs::create_dir_all(&folder)?;
        let machine = self.machine.machine()?;
        let interfaces = self.interfaces();
        let streams = draw(&machine, &folder, self.mib, &interfaces)?;
        let effort = match (self.quick, self.minutes) {
            (true, _) => Effort::Quick,
            (false, None) => Effort::Full,
            (false, Some(minutes)) => {
                Effort::Until(Instant::now() + Duration::from_secs(60 * minutes))
            }
        };
        let mut verdicts = examine_all(&streams.found, effort)?;
        for verdict in &mut verdicts {
            let interface = &verdict.interface;
            if !verdict.faults.is_empty() {
                println!("{interface}: {}; once more", verdict.faults.join("; "));
                let again = draw(&machine, &folder, self.mib, &[interface.as_str()])?;
                let (_, stream) = again.found.first().context("the interface is gone")?;
                *verdict = Verdict { second_try: true, ..examine(interface, stream, effort)? };
            }
        }
        for (_, stream) in &streams.found {
            fs::remove_file(stream)?;
        }
        let jitter = if self.no_jitter { None } else { Some(estimators::run(&machine, &folder)?) };
        let report = Report { cpu: self.machine.cpu, verdicts, missing: streams.missing, jitter };
        let text = report.text();
        fs::write(folder.join("report.json"), serde_json::to_string_pretty(&report)?)?;
        fs::write(folder.join("report.txt"), &text)?;
        print!("{text}");
        println!("kept in {}", paths::shown(&folder));
        Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn interfaces(&self) -> Vec<&str> {
        if self.interfaces.is_empty() {
            return INTERFACES.to_vec();
        }
        self.interfaces.iter().map(String::as_str).collect()
    }
}

/// How much is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Without dieharder.
    Quick,
    /// As many of dieharder's tests as begin before this moment, the quickest first.
    Until(Instant),
    Full,
}

/// What came of [`sample`].
pub enum Sample {
    Sound,
    /// The tools are not there and cannot be had.
    Skipped(String),
}

/// What every change has to pass: 4 MiB of each interface through rngtest and ent, where these can be had.
/// A sample that fails is drawn again, so that a sound kernel fails less than once in 10^8 runs.
pub fn sample() -> Result<Sample> {
    if let Err(error) = setup::ensure(&[Need::Rngtest, Need::Ent]) {
        let why = format!("{error:#}");
        return Ok(Sample::Skipped(why.lines().next().unwrap_or_default().to_owned()));
    }
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(paths::kernel());
    let mut failed: Vec<String> = INTERFACES.map(str::to_owned).to_vec();
    let mut faults = Vec::new();
    for _ in 0..2 {
        let interfaces: Vec<&str> = failed.iter().map(String::as_str).collect();
        let streams = draw(&machine, folder.path(), SAMPLE_MIB, &interfaces)?;
        if !streams.missing.is_empty() {
            bail!("the kernel has no {}", streams.missing.join(", "));
        }
        failed = Vec::new();
        for (interface, stream) in &streams.found {
            let verdict = examine(interface, stream, Effort::Quick)?;
            if !verdict.faults.is_empty() {
                faults.push(format!("{interface}: {}", verdict.faults.join("; ")));
                failed.push(interface.clone());
            }
        }
        if failed.is_empty() {
            return Ok(Sample::Sound);
        }
    }
    bail!("two samples in a row fail: {}", faults.join(", "))
}

/// The files that one boot filled.
pub struct Streams {
    pub found: Vec<(String, PathBuf)>,
    /// Interfaces that this kernel does not have.
    pub missing: Vec<String>,
}

/// Boots Alea and has it send `mib` mebibytes of each interface; one file for each below `folder`.
pub fn draw(machine: &Machine, folder: &Path, mib: u32, interfaces: &[&str]) -> Result<Streams> {
    let all = folder.join("stream.bin");
    let line = format!(
        "console=ttyS0 quiet rdinit=/usr/lib/alea/randomstats -- {mib} {}",
        interfaces.join(" ")
    );
    let channel = format!("file,id=channel,path={}", all.display());
    let machine = machine
        .clone()
        .direct(paths::kernel(), Some(paths::programs_initramfs()), &line)
        .args(["-chardev", &channel, "-device", "virtio-serial-pci"])
        .args(["-device", "virtserialport,chardev=channel"]);
    let spinner = term::spinner(&format!("drawing from {}", interfaces.join(", ")));
    let outcome = Guest::start(&machine)?.finish(Limits::idle(PATIENCE));
    spinner.finish_and_clear();
    let outcome = outcome?.powered_off()?;
    let mut streams = Streams { found: Vec::new(), missing: Vec::new() };
    let mut file = File::open(&all)?;
    for (name, bytes) in sent(&outcome.output) {
        if bytes == 0 {
            streams.missing.push(name);
            continue;
        }
        let path = folder.join(format!("{name}.bin"));
        let copied = std::io::copy(&mut (&mut file).take(bytes), &mut File::create(&path)?)?;
        if copied != bytes {
            bail!("{name}: {copied} of {bytes} bytes came through the channel");
        }
        streams.found.push((name, path));
    }
    fs::remove_file(&all)?;
    if streams.found.len() + streams.missing.len() != interfaces.len() {
        bail!("the guest did not send all that it was asked for:\n{}", outcome.describe());
    }
    Ok(streams)
}

/// The lines `sent INTERFACE BYTES`.
fn sent(output: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        // The firmware's own output may stand in front.
        let (_, rest) = line.split_once("sent ")?;
        let (name, bytes) = rest.trim().split_once(' ')?;
        Some((name.to_owned(), bytes.parse().ok()?))
    };
    output.lines().filter_map(line).collect()
}

/// Runs the tests on one file.
pub fn examine(interface: &str, stream: &Path, effort: Effort) -> Result<Verdict> {
    let bytes = fs::metadata(stream)?.len();
    let rngtest = Rngtest::run(stream)?;
    let ent = Ent::run(stream)?;
    let dieharder = match effort {
        Effort::Quick => Vec::new(),
        Effort::Until(end) => Dieharder::run_all(interface, stream, Some(end))?,
        Effort::Full => Dieharder::run_all(interface, stream, None)?,
    };
    let mut faults = rngtest.faults();
    faults.extend(ent.faults(bytes));
    faults.extend(dieharder.iter().filter_map(Dieharder::fault));
    let interface = interface.to_owned();
    Ok(Verdict { interface, bytes, rngtest, ent, dieharder, faults, second_try: false })
}

/// All of them at once: the tools use one CPU each.
fn examine_all(streams: &[(String, PathBuf)], effort: Effort) -> Result<Vec<Verdict>> {
    thread::scope(|scope| {
        let start = |(interface, stream): &'_ (String, PathBuf)| {
            let (interface, stream) = (interface.clone(), stream.clone());
            scope.spawn(move || examine(&interface, &stream, effort))
        };
        let running: Vec<_> = streams.iter().map(start).collect();
        let join = |examiner: thread::ScopedJoinHandle<'_, Result<Verdict>>| {
            examiner.join().unwrap_or_else(|_| bail!("a test of this program itself went wrong"))
        };
        running.into_iter().map(join).collect()
    })
}

impl Report {
    fn is_good(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.faults.is_empty())
            && self.jitter.as_ref().is_none_or(Estimate::is_enough)
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            "interface",
            "MiB",
            "FIPS blocks failed",
            "expected",
            "entropy/byte",
            "chi-square p",
            "serial corr.",
            "dieharder",
            "weakest p",
            "verdict",
        ]);
        for verdict in &self.verdicts {
            let count = verdict.dieharder.len();
            let weakest = verdict.dieharder.iter().map(Dieharder::tail).reduce(f64::min);
            table.row(vec![
                verdict.interface.clone(),
                (verdict.bytes >> 20).to_string(),
                format!("{} of {}", verdict.rngtest.failures, verdict.rngtest.blocks()),
                format!("{:.0}", verdict.rngtest.expected()),
                format!("{:.6}", verdict.ent.entropy),
                format!("{:.3}", verdict.ent.chi_square_p()),
                format!("{:+.6}", verdict.ent.serial_correlation),
                match Dieharder::tests_in(&verdict.dieharder) {
                    0 => "-".into(),
                    tests => format!("{tests} of {} tests, {count} values", Dieharder::TESTS),
                },
                weakest.map_or("-".into(), |p| format!("{p:.4}")),
                match (verdict.faults.is_empty(), verdict.second_try) {
                    (true, false) => "passed".into(),
                    (true, true) => "passed, second sample".into(),
                    (false, _) => verdict.faults.join("; "),
                },
            ]);
        }
        let mut text = table.render();
        for missing in &self.missing {
            text.push_str(&format!("{missing}: this kernel does not have it\n"));
        }
        if let Some(jitter) = &self.jitter {
            text.push('\n');
            text.push_str(&jitter.text());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_lines_are_read() {
        let output = "Booting from ROM..sent getrandom 268435456\nsent vdso 0\nrandomstats: done\n";
        let expected = [("getrandom".to_owned(), 268_435_456), ("vdso".to_owned(), 0)];
        assert_eq!(sent(output), expected);
    }
}
