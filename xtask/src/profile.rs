//! `cargo xtask profile`: where the time of an exec goes, phase by phase.
//!
//! The kernel keeps the figures (`/proc/alea/exec_phases`); this boots it, has 500 execs done, and
//! prints what it says.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::guest::{End, Guest, Limits};
use crate::qemu::{Machine, MachineArgs};
use crate::setup::{self, Need};
use crate::table::{self, Table};
use crate::{build, paths, symbolize, term};

/// Boots Alea, warms its caches, and shows where 500 execs of /bin/true spend their time.
#[derive(Args)]
pub struct Profile {
    /// What serves random bytes to user space
    #[arg(long, value_name = "GENERATOR")]
    generator: Option<Generator>,
    /// A second generator: boots once more and prints both tables
    #[arg(long, value_name = "GENERATOR")]
    compare: Option<Generator>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// The values of the kernel's `random.generator=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Generator {
    Rdrand,
    Splitmix64,
    Chacha20,
}

impl Generator {
    fn name(self) -> &'static str {
        match self {
            Self::Rdrand => "rdrand",
            Self::Splitmix64 => "splitmix64",
            Self::Chacha20 => "chacha20",
        }
    }
}

/// One line of the kernel's table.
#[derive(Debug, PartialEq, Serialize)]
pub struct Phase {
    pub name: String,
    pub count: u64,
    pub avg_ns: f64,
    pub min_ns: f64,
    pub max_ns: f64,
    pub p99_ns: f64,
    pub share_percent: f64,
}

/// One boot's table.
#[derive(Serialize)]
struct Figures {
    generator: Option<&'static str>,
    phases: Vec<Phase>,
}

impl Profile {
    /// The default generator, counted in instructions.
    pub fn instructions(machine: &MachineArgs) -> Self {
        Self { generator: None, compare: None, json: false, machine: machine.clone() }
    }

    /// One boot's phases.
    pub fn phases(&self, machine: &Machine) -> Result<Vec<Phase>> {
        Ok(self.measure(machine, self.generator)?.phases)
    }

    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(build::Options::default())?;
        let machine = self.machine.machine()?;
        let mut all = vec![self.measure(&machine, self.generator)?];
        if self.compare.is_some() {
            all.push(self.measure(&machine, self.compare)?);
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(ExitCode::SUCCESS);
        }
        for figures in &all {
            println!(
                "500 execs of /bin/true, random.generator={}",
                figures.generator.unwrap_or("(default)")
            );
            println!("{}", self.table(&figures.phases).render());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, machine: &Machine, generator: Option<Generator>) -> Result<Figures> {
        let mut line = String::from("console=ttyS0 rdinit=/usr/lib/alea/profile");
        if let Some(generator) = generator {
            line.push_str(&format!(" random.generator={}", generator.name()));
        }
        let initrd = Some(paths::initramfs());
        let machine = machine.clone().direct(paths::kernel(), initrd, &line);
        let spinner = term::spinner("550 execs on Alea");
        let outcome = Guest::start(&machine)?.finish(Limits::idle(Duration::from_secs(60)));
        spinner.finish_and_clear();
        let outcome = outcome?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(&paths::kernel(), &outcome.output);
            let report = report.unwrap_or_else(|| outcome.stuck_at(&paths::kernel()));
            bail!("{}\n{report}", outcome.describe());
        }
        let phases = parse(&outcome.output).with_context(|| outcome.describe())?;
        Ok(Figures { generator: generator.map(Generator::name), phases })
    }

    fn table(&self, phases: &[Phase]) -> Table {
        let figure = |value: f64| {
            if self.machine.icount { table::count(value) } else { table::time(value) }
        };
        let mut table =
            Table::new(&["phase", "count", "average", "min", "max", "p99", "% of exec"]);
        for phase in phases {
            table.row(vec![
                phase.name.clone(),
                phase.count.to_string(),
                figure(phase.avg_ns),
                figure(phase.min_ns),
                figure(phase.max_ns),
                figure(phase.p99_ns),
                format!("{:.2}", phase.share_percent),
            ]);
        }
        table
    }
}

/// The table between the guest's two marks.
fn parse(output: &str) -> Result<Vec<Phase>> {
    let table = output.split("profile: begin\n").nth(1).context("the guest printed no table")?;
    let table = table.split("profile: end").next().unwrap_or(table);
    let phases: Vec<Phase> = table.lines().filter_map(phase).collect();
    if phases.is_empty() {
        bail!("the guest's table is empty");
    }
    Ok(phases)
}

/// One line of the table; the header is none.
fn phase(line: &str) -> Option<Phase> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, count, avg, min, max, p99, share] = words[..] else { return None };
    Some(Phase {
        name: name.to_owned(),
        count: count.parse().ok()?,
        avg_ns: avg.parse().ok()?,
        min_ns: min.parse().ok()?,
        max_ns: max.parse().ok()?,
        p99_ns: p99.parse().ok()?,
        share_percent: share.trim_end_matches('%').parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let output = "500 execs of /bin/true: 3130.6 us each\nprofile: begin\n\
            phase count avg_ns min_ns max_ns p99_ns share_percent\n\
            random 500 120 80 900 300 0.31\nelf_load 500 20000 18000 40000 30000 51.70\n\
            profile: end\nrandom 1 1 1 1 1 1\n";
        let phases = parse(output).unwrap();
        assert_eq!(phases.len(), 2);
        assert_eq!(phases[0].name, "random");
        assert_eq!((phases[0].count, phases[1].share_percent), (500, 51.7));
    }

    #[test]
    fn a_missing_or_empty_table_is_an_error() {
        assert!(parse("nothing\n").is_err());
        assert!(parse("profile: begin\nprofile: end\n").is_err());
    }
}
