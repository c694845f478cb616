//! Where figures go that stay: the tables of README and docs, and the report's page.

use anyhow::{Result, bail};
use serde_json::Value;

use super::about::sentence;
use super::bench::{Bench, Both, MEMORY};
use super::results::{ratio, rows};
use crate::figures::Samples;
use crate::growth::{self, Grown};
use crate::report::{self, BenchPart, Curve, Row, Spread};
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, term};
use xtask_tidy::shown;

impl Bench {
    /// Sets the figures that README shows: with two CPUs or a changed Linux only the ratio, in a column of its own.
    pub(super) fn show(&self, both: &Both) -> Result<()> {
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
    pub(super) fn write_report(&self, both: &Both, about: &Value) -> Result<()> {
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
    pub(super) fn growth(&self) -> Result<Vec<Curve>> {
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
    pub(super) fn command(&self) -> String {
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

    pub(super) fn report_rows(&self, both: &Both) -> Vec<Row> {
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
}
