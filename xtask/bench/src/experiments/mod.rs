//! `cargo xtask experiments`: the published experiments about random bytes and system calls, done again on Linux and on Alea.
//!
//! Each is a guest program of `userland/experiments`, which is init; the kernels boot in turn. A guest says `rung NAME CALLS NS` for what
//! it measured, `share NAME PERCENT` and `count NAME PIECES CALLS` for what it counted, and `fact NAME yes|no` for what it found.

mod articles;
mod guests;
mod outcome;

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::report::{self, Call, ExperimentPart, ExperimentRow, ExperimentsPart};
use articles::{EXPERIMENTS, Experiment};
use guests::Boots;
use outcome::{Outcome, Unit};
use xtask_guest::qemu::{self, MachineArgs};
use xtask_host::table::Table;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::shown;

/// Does the published experiments again, on both kernels.
#[derive(Args)]
pub struct Experiments {
    /// Only these: fread, tax, strings, syscall, locking
    #[arg(value_name = "NAME", value_parser = EXPERIMENTS.map(|experiment| experiment.name))]
    names: Vec<String>,
    /// How much of the articles' numbers of calls
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Cycles of the TSC that each RDRAND of `tax` is charged with; the default is the article's 25 us where the TSC counts at 1 GHz, as
    /// QEMU's does with --icount
    #[arg(long, value_name = "CYCLES", default_value_t = RDRAND_COST)]
    rdrand_cost: u64,
    /// Write the tables into docs/figures.toml and the page that shows them
    #[arg(long, requires = "icount")]
    write_figures: bool,
    /// Write target/alea/report/experiments/index.html: each article's claim, its figures and ours
    #[arg(long)]
    report: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

const RDRAND_COST: u64 = 25_000;

fn scale(text: &str) -> Result<f64> {
    let scale: f64 = text.parse()?;
    ensure!(scale > 0.0 && scale.is_finite(), "a scale is more than 0");
    Ok(scale)
}

/// One experiment on both kernels.
#[derive(Serialize)]
pub struct Done {
    pub name: &'static str,
    linux: Outcome,
    /// By the title of the way.
    alea: Vec<(&'static str, Outcome)>,
}

const NEEDS: [Need; 6] =
    [Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox, Need::Linux, Need::Go];

impl Experiments {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&NEEDS)?;
        build::build(build::Options::SHIPPED)?;
        let is_asked = |experiment: &&Experiment| {
            self.names.is_empty() || self.names.iter().any(|name| name == experiment.name)
        };
        let boots =
            Boots { scale: self.scale, rdrand_cost: self.rdrand_cost, machine: &self.machine };
        let mut all = Vec::new();
        for experiment in EXPERIMENTS.iter().filter(is_asked) {
            let done = boots.both(experiment)?;
            println!("{}: {}", experiment.name, experiment.article);
            println!("{}", done.table(experiment, self.machine.icount).render());
            all.push((experiment, done));
        }
        let file = paths::alea().join("experiments.json");
        let figures: Vec<&Done> = all.iter().map(|(_, done)| done).collect();
        fs::write(&file, serde_json::to_string_pretty(&figures)? + "\n")?;
        println!("all figures are in {}", paths::shown(&file));
        if self.write_figures {
            write(&figures)?;
        }
        if self.report {
            println!("{}", paths::shown(&report::write_experiments(&self.part(&all)?)?));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Experiments {
    fn part(&self, all: &[(&Experiment, Done)]) -> Result<ExperimentsPart> {
        let instructions = self.machine.icount;
        let date = process::output(Command::new("date").args(["-u", "+%FT%TZ"]))?;
        let mut command = format!("cargo xtask experiments --report --scale {}", self.scale);
        if instructions {
            command.push_str(" --icount");
        }
        Ok(ExperimentsPart {
            about: format!(
                "{}: {} CPU(s) of {}, {}, QEMU {}.",
                date.trim(),
                self.machine.smp,
                self.machine.cpu,
                self.machine.memory(),
                qemu::version()?,
            ),
            command,
            instructions,
            experiments: all.iter().map(|(one, done)| done.part(one, instructions)).collect(),
        })
    }
}

/// Does every experiment at a scale, on a machine of so many CPUs that counts instructions; the kernels and programs are there.
pub fn sample(scale: f64, cpus: u32) -> Result<Vec<Done>> {
    setup::ensure(&NEEDS)?;
    let machine = MachineArgs { icount: true, smp: cpus, ..MachineArgs::default() };
    let boots = Boots { scale, rdrand_cost: RDRAND_COST, machine: &machine };
    EXPERIMENTS.iter().map(|experiment| boots.both(experiment)).collect()
}

/// A row of a table: the figure's name and unit, what it is on Linux, and in each of Alea's ways.
struct Row<'a> {
    name: &'a str,
    unit: Unit,
    linux: Option<f64>,
    alea: Vec<Option<f64>>,
}

impl Row<'_> {
    /// Alea's last way as a part of Linux.
    fn ratio(&self) -> Option<f64> {
        Some(self.alea.last().copied().flatten()? / self.linux?)
    }

    fn cells(&self, experiment: &Experiment, instructions: bool) -> Vec<String> {
        let show = |figure: Option<f64>| {
            figure.map_or("-".to_owned(), |figure| self.unit.show(figure, instructions))
        };
        let published = experiment.published(self.name).unwrap_or("-");
        let mut cells = vec![self.name.to_owned(), published.to_owned(), show(self.linux)];
        cells.extend(self.alea.iter().map(|figure| show(*figure)));
        cells.push(self.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.3}")));
        cells
    }

    /// What a chart shows of it, if it is what a call costs.
    fn call(&self, experiment: &Experiment) -> Option<Call> {
        let alea = self.alea.last().copied().flatten()?;
        let published = experiment.published(self.name).unwrap_or_default();
        (self.unit == Unit::Call).then_some(Call {
            name: self.name.to_owned(),
            published: published.split(", then ").filter_map(articles::nanoseconds).collect(),
            linux: self.linux?,
            alea,
        })
    }
}

impl Done {
    /// What one call costs on Linux and on Alea, for each rung.
    pub fn rungs(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let calls = self.rows().filter(|row| row.unit == Unit::Call);
        calls.filter_map(|row| Some((row.name, row.linux?, row.alea.last().copied().flatten()?)))
    }

    /// A figure in Alea's first way.
    pub fn in_first_way(&self, name: &str) -> Option<f64> {
        self.alea.first().and_then(|(_, outcome)| outcome.value(name))
    }

    /// In the order in which Alea printed them: it measures all that Linux does.
    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let figures = self.alea.last().map_or(&[][..], |(_, outcome)| &outcome.figures);
        figures.iter().map(|figure| Row {
            name: &figure.name,
            unit: figure.unit,
            linux: self.linux.value(&figure.name),
            alea: self.alea.iter().map(|(_, outcome)| outcome.value(&figure.name)).collect(),
        })
    }

    /// The titles of the table.
    fn titles(&self, instructions: bool) -> Vec<&'static str> {
        let unit = if instructions { "instructions" } else { "time of a call" };
        let mut titles = vec![unit, "published", "Linux"];
        titles.extend(self.alea.iter().map(|(title, _)| *title));
        titles.push("/ Linux");
        titles
    }

    fn table(&self, experiment: &Experiment, instructions: bool) -> Table {
        let mut table = Table::new(&self.titles(instructions));
        for row in self.rows() {
            table.row(row.cells(experiment, instructions));
        }
        table
    }

    fn part(&self, experiment: &Experiment, instructions: bool) -> ExperimentPart {
        let row = |row: Row<'_>| ExperimentRow {
            cells: row.cells(experiment, instructions),
            call: row.call(experiment),
        };
        ExperimentPart {
            article: experiment.article.to_owned(),
            claim: experiment.claim.to_owned(),
            today: experiment.today.to_owned(),
            titles: self.titles(instructions).into_iter().map(str::to_owned).collect(),
            rows: self.rows().map(row).collect(),
        }
    }
}

/// Writes the figures into the page.
fn write(all: &[&Done]) -> Result<()> {
    let mut figures = shown::Figures::load(paths::root())?;
    for done in all {
        let name = format!("experiment-{}", done.name);
        for row in done.rows() {
            let show = |figure: f64| row.unit.show(figure, true);
            let mut cells = Vec::new();
            cells.extend(row.linux.map(|figure| ("Linux 6.12", show(figure))));
            for ((title, _), figure) in done.alea.iter().zip(&row.alea) {
                cells.extend(figure.map(|figure| (*title, show(figure))));
            }
            cells.extend(row.ratio().map(|ratio| ("/ Linux", format!("{ratio:.3}"))));
            figures.set(&name, row.name, &cells)?;
        }
    }
    figures.write(paths::root())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "rung exec_true 10 1000\nexperiment-end\n";
    const ALEA: &str = "share random 2.00\nrung exec_true 10 250\nexperiment-end\n";

    fn done() -> Done {
        let outcome = |text| Outcome::read(text).unwrap();
        Done {
            name: "tax",
            linux: outcome(LINUX),
            alea: vec![("rdrand", outcome(LINUX)), ("chacha20", outcome(ALEA))],
        }
    }

    #[test]
    fn the_last_way_is_compared_with_linux() {
        assert_eq!(done().rungs().collect::<Vec<_>>(), [("exec_true", 100.0, 25.0)]);
    }

    #[test]
    fn what_only_one_of_them_has_is_a_row_too() {
        let done = done();
        let rows: Vec<_> = done.rows().collect();
        assert_eq!((rows[0].name, rows[0].linux), ("random, of an exec", None));
        assert_eq!(rows[0].alea, [None, Some(2.0)]);
        assert_eq!((rows[0].ratio(), rows[1].ratio()), (None, Some(0.25)));
    }

    #[test]
    fn a_scale_is_a_number_above_zero() {
        assert!(scale("0.01").is_ok());
        assert!(["0", "-1", "inf", "x"].iter().all(|text| scale(text).is_err()));
    }
}
