//! `cargo xtask tools`: what strace, gdb, perf and a seccomp filter cost a program, on Linux and on Alea, in one run.
//!
//! `tests/bench/tools.sh` runs in a root of Debian with one CPU, and tells of each job what it takes alone and watched, in counted
//! instructions: so the figures repeat on a busy host. Each of its parts has a boot of its own.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::counted;
use xtask_host::paths;
use xtask_host::table::{self, Table};
use xtask_setup::build;
use xtask_suites::debian::root;
use xtask_tidy::shown;

/// What watching may cost at most, beyond the program's own time, of what it costs on Linux.
const GOAL: f64 = 0.5;

/// The parts of the script.
const PARTS: [&str; 4] = ["strace", "gdb", "perf", "filters"];

/// The name of the table in `docs/figures.toml`.
const TABLE: &str = "tools";

#[derive(Args)]
pub struct Tools {
    /// Write the figures into docs/figures.toml and the page that shows them
    #[arg(long)]
    write_figures: bool,
    /// Measure these parts only
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = PARTS)]
    only: Vec<String>,
}

/// One job on one kernel.
#[derive(Clone, Debug, PartialEq)]
struct Job {
    name: String,
    alone: f64,
    watched: f64,
}

impl Job {
    /// What being watched costs.
    fn cost(&self) -> f64 {
        self.watched - self.alone
    }
}

impl Tools {
    pub fn run(self) -> Result<ExitCode> {
        build::build(build::Options::default())?;
        build::shipped_kernel()?;
        let script = std::fs::read_to_string(paths::source("tests/bench/tools.sh"))?;
        let root = root::tar(&counted::packages(&script)?, &root::hook(&[], false), false)?;
        let alea = paths::shipped_kernel();
        let alea = alea.to_str().context("the kernel's path is no text")?;
        let mut jobs = Vec::new();
        for part in PARTS {
            if self.only.is_empty() || self.only.iter().any(|only| only == part) {
                let linux = jobs_on("linux", &root, &script, part)?;
                let alea = jobs_on(alea, &root, &script, part)?;
                let same = linux.iter().map(|job| &job.name).eq(alea.iter().map(|job| &job.name));
                ensure!(same && !linux.is_empty(), "not the same jobs of {part} on both kernels");
                jobs.extend(linux.into_iter().zip(alea));
            }
        }
        self.show(&jobs)
    }

    fn show(&self, jobs: &[(Job, Job)]) -> Result<ExitCode> {
        let mut table =
            Table::new(&["job", "Linux alone", "watched", "Alea alone", "watched", "ratio"]);
        let mut figures = shown::Figures::load(paths::root())?;
        let mut within = true;
        for (linux, alea) in jobs {
            let ratio = alea.cost() / linux.cost();
            within &= ratio <= GOAL;
            let [a, b, c, d] =
                [linux.alone, linux.watched, alea.alone, alea.watched].map(table::time);
            let cells = [
                ("Linux, alone", a.clone()),
                ("Linux, watched", b.clone()),
                ("Alea, alone", c.clone()),
                ("Alea, watched", d.clone()),
                ("cost, Alea / Linux", format!("{ratio:.3}")),
            ];
            if self.write_figures {
                figures.set_or_add(TABLE, &linux.name, &cells)?;
            }
            table.row(vec![linux.name.clone(), a, b, c, d, format!("{ratio:.3}")]);
        }
        println!("{}", table.render());
        if self.write_figures {
            figures.write(paths::root())?;
        }
        if !within {
            println!("a ratio is above the goal of {GOAL}");
        }
        Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn jobs_on(kernel: &str, root: &std::path::Path, script: &str, part: &str) -> Result<Vec<Job>> {
    let text = counted::run(kernel, root, script, part)?;
    text.lines().filter_map(|line| line.strip_prefix("tool ")).map(job).collect()
}

/// `NAME ALONE WATCHED`; a name may have spaces.
fn job(line: &str) -> Result<Job> {
    let mut words = line.rsplitn(3, ' ');
    let mut number = || words.next()?.parse::<f64>().ok();
    let (watched, alone) = (number(), number());
    let name = words.next().map(str::to_owned);
    let read = || Some(Job { name: name?, alone: alone?, watched: watched? });
    let job = read().with_context(|| format!("not a job: {line}"))?;
    ensure!(job.alone > 0.0 && job.cost() > 0.0, "watching costs nothing: {line}");
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read() {
        let read = job("strace -c ls -R / 1000 5000").unwrap();
        assert_eq!(
            (read.name.as_str(), read.alone, read.cost()),
            ("strace -c ls -R /", 1000.0, 4000.0)
        );
        for wrong in ["ls", "ls 1", "ls 1 x", "ls 5 4", "ls 0 4"] {
            assert!(job(wrong).is_err(), "{wrong}");
        }
    }
}
