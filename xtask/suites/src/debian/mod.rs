//! `cargo xtask debian`: programs of Debian in a root that mmdebstrap makes, on Linux and on Alea, in one table.
//!
//! Each unit is a script of `tests/debian`, run in a machine of its own on each kernel. It passes if it ends with status 0 and
//! prints the same on both.

mod login;
mod record;
pub mod root;
mod units;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use units::Unit;
use xtask_host::table::Table;
use xtask_host::tally::Tally;
use xtask_host::{process, term};

/// What CI runs: a package manager, a server with PAM, a tracer, stressors, and a whole boot.
const SAMPLE: [&str; 5] = ["apt", "ssh", "strace", "stress", "sysvinit"];

/// Many times what the slowest unit takes on Linux.
const LIMIT: Duration = Duration::from_secs(900);

/// The two kernels, by the names that `cargo xtask run --kernel` knows.
const KERNELS: [&str; 2] = ["linux", "alea"];

/// Runs programs of Debian on Linux and on Alea, and compares what they print.
#[derive(Args)]
pub struct Debian {
    /// Which scripts of tests/debian; default: all
    units: Vec<String>,
    /// Make the root anew, with today's packages
    #[arg(long)]
    fresh: bool,
    /// The number of CPUs
    #[arg(long, default_value_t = 2)]
    smp: u32,
    /// Run on this kernel only, and print what the units print
    #[arg(long, value_name = "alea|linux", value_parser = KERNELS)]
    only: Option<String>,
    /// Write the rows of these units into docs/figures.toml and the page that shows them
    #[arg(long, conflicts_with = "only")]
    write_figures: bool,
}

impl Debian {
    pub fn run(self) -> Result<ExitCode> {
        let units = units::named(&self.units)?;
        let root = root::provide(&units, self.fresh)?;
        match &self.only {
            Some(kernel) => self.print(&units, &root, kernel),
            None => compare(&units, &root, self.smp, self.write_figures).map(Tally::conclude),
        }
    }

    fn print(&self, units: &[Unit], root: &Path, kernel: &str) -> Result<ExitCode> {
        let mut tally = Tally::default();
        for unit in units {
            let ran = ran(unit, root, kernel, self.smp)?;
            tally.count(ran.passed());
            println!("=== {}: {}, {}\n{}", unit.name, ran.verdict(), seconds(ran.cpu), ran.output);
        }
        Ok(tally.conclude())
    }
}

/// CI's part of it.
pub fn sample() -> Result<Tally> {
    let units = units::named(&SAMPLE.map(String::from))?;
    compare(&units, &root::provide(&units, false)?, 2, false)
}

/// How a unit ended on one kernel.
struct Ran {
    status: Option<i32>,
    /// Standard output and error.
    output: String,
    /// Of QEMU and of what started it.
    cpu: Duration,
}

impl Ran {
    fn passed(&self) -> bool {
        self.status == Some(0)
    }

    fn verdict(&self) -> String {
        match self.status {
            Some(0) => "works".to_owned(),
            Some(124) => format!("no end in {} s", LIMIT.as_secs()),
            Some(status) => format!("status {status}"),
            None => "killed".to_owned(),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// Runs all units on both kernels, and prints the table.
fn compare(units: &[Unit], root: &Path, smp: u32, write_figures: bool) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut table = Table::new(&[
        "unit",
        "Linux",
        "Alea",
        "CPU s Linux",
        "CPU s Alea",
        "Alea / Linux",
        "wall s",
    ]);
    let mut faults = String::new();
    // Packing the root is nobody's time.
    ran(&units::boot()?, root, "alea", smp)?;
    for unit in units {
        let begun = Instant::now();
        let [linux, alea] = KERNELS.map(|kernel| ran(unit, root, kernel, smp));
        let (linux, alea) = (linux?, alea?);
        let same = linux.output == alea.output;
        let passed = linux.passed() && alea.passed() && same;
        tally.count(passed);
        let word = if passed { "ok     " } else { "FAILED " };
        println!("{word} {}: {}", unit.name, unit.about);
        if !passed {
            for (kernel, ran) in [("Linux", &linux), ("Alea", &alea)] {
                let (name, verdict) = (&unit.name, ran.verdict());
                faults.push_str(&format!("--- {name} on {kernel}: {verdict}\n{}\n", ran.output));
            }
        }
        let verdict = if alea.passed() && !same { "prints else".into() } else { alea.verdict() };
        if write_figures {
            record::write(&unit.name, &linux, &alea, &verdict)?;
        }
        table.row(vec![
            unit.name.clone(),
            linux.verdict(),
            verdict,
            seconds(linux.cpu),
            seconds(alea.cpu),
            record::ratio(&linux, &alea),
            seconds(begun.elapsed()),
        ]);
    }
    print!("\n{}\n{faults}", table.render());
    Ok(tally)
}

/// Runs one unit on one kernel; on Linux once more, if QEMU itself died: its TCG trips over an assertion of its own now and then.
fn ran(unit: &Unit, root: &Path, kernel: &str, smp: u32) -> Result<Ran> {
    let ran = ran_once(unit, root, kernel, smp)?;
    if kernel == "linux" && ran.output.contains("killed QEMU") {
        println!("again   {} on {kernel}: {}", unit.name, ran.output.trim_end());
        return ran_once(unit, root, kernel, smp);
    }
    Ok(ran)
}

/// Runs one unit on one kernel, in a machine of its own.
fn ran_once(unit: &Unit, root: &Path, kernel: &str, smp: u32) -> Result<Ran> {
    let spinner = term::spinner(&format!("{} on {kernel}", unit.name));
    let before = process::children_cpu();
    let mut command = process::cargo();
    command.args(["xtask", "run", "--root"]).arg(root);
    command.args(["--kernel", kernel, "--smp", &smp.to_string()]);
    command.args(["--timeout", &LIMIT.as_secs().to_string()]);
    // Whoever stops this program stops the machine, too.
    let mut command = process::bound(command);
    let (status, output) = match &unit.init {
        Some(init) => login::type_in(&mut command, init, &unit.script)?,
        None => run(&mut command, &unit.script)?,
    };
    spinner.finish_and_clear();
    Ok(Ran { status, output, cpu: process::children_cpu() - before })
}

/// A script that a shell runs as the guest's one command.
fn run(command: &mut Command, script: &str) -> Result<(Option<i32>, String)> {
    // Both to one stream, in the order of their lines.
    let script = format!("exec 2>&1\n{script}");
    let output = command
        .args(["--", "/bin/sh", "-c", &script])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .context("cannot start cargo")?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(101) => bail!("{}", String::from_utf8_lossy(&output.stderr)),
        Some(0) => {}
        // Why the guest or the command did not start.
        _ => text.push_str(&String::from_utf8_lossy(&output.stderr)),
    }
    Ok((output.status.code(), text))
}
