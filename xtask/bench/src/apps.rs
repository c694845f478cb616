//! `cargo xtask bench --apps`: programs that people run, unmodified from Debian, on Linux and on Alea.
//!
//! `tests/bench/apps.sh` says what each job does. A job is run once to bring in its files, then counted; what it prints must be the
//! same on both kernels. The figures are instructions of the whole guest, kernel and programs, with one CPU.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::counted;
use xtask_host::paths;
use xtask_host::table::{self, Table};
use xtask_suites::debian::root;
use xtask_tidy::shown;

/// The parts of the script.
const PARTS: [&str; 6] = ["files", "packages", "databases", "servers", "languages", "compiler"];

/// The name of the table in `docs/figures.toml`.
const TABLE: &str = "apps";

/// What the median of all jobs may take of what it takes on Linux.
const GOAL: f64 = 0.5;

/// One job on one kernel.
#[derive(Clone, Debug, PartialEq)]
struct Job {
    name: String,
    nanoseconds: f64,
    /// Of what it printed.
    sum: String,
}

/// Runs the jobs of the parts whose names contain one of `only`, or all.
pub fn run(only: &[String], write_figures: bool) -> Result<ExitCode> {
    let script = std::fs::read_to_string(paths::source("tests/bench/apps.sh"))?;
    let root = root::tar(&counted::packages(&script)?, &root::hook(&[], false), false)?;
    let alea = paths::shipped_kernel();
    let alea = alea.to_str().context("the kernel's path is no text")?;
    let mut jobs = Vec::new();
    for part in PARTS {
        if only.is_empty() || only.iter().any(|only| part.contains(only.as_str())) {
            let on = |kernel| -> Result<Vec<Job>> {
                let text = counted::run(kernel, &root, &script, part)?;
                text.lines().filter_map(|line| line.strip_prefix("app ")).map(job).collect()
            };
            let (linux, alea) = (on("linux")?, on(alea)?);
            ensure!(linux.len() == alea.len() && !linux.is_empty(), "not the same jobs of {part}");
            for pair in linux.into_iter().zip(alea) {
                let (linux, alea) = &pair;
                let same = linux.name == alea.name && linux.sum == alea.sum;
                ensure!(same, "{}: it does not print the same on both kernels", linux.name);
                jobs.push(pair);
            }
        }
    }
    show(&jobs, write_figures)
}

fn show(jobs: &[(Job, Job)], write_figures: bool) -> Result<ExitCode> {
    let mut table = Table::new(&["job", "Linux", "Alea", "ratio"]);
    let mut figures = shown::Figures::load(paths::root())?;
    let mut ratios = Vec::new();
    for (linux, alea) in jobs {
        let ratio = alea.nanoseconds / linux.nanoseconds;
        ratios.push(ratio);
        let [a, b] = [linux, alea].map(|job| table::time(job.nanoseconds));
        if write_figures {
            let cells = [
                ("Linux", a.clone()),
                ("Alea", b.clone()),
                ("Alea / Linux", format!("{ratio:.3}")),
            ];
            figures.set_or_add(TABLE, &linux.name, &cells)?;
        }
        table.row(vec![linux.name.clone(), a, b, format!("{ratio:.3}")]);
    }
    println!("{}", table.render());
    if write_figures {
        figures.write(paths::root())?;
    }
    ratios.sort_by(f64::total_cmp);
    let median = median(&ratios);
    println!("median {median:.3}, slowest {:.3}", ratios.last().context("no job")?);
    if median > GOAL {
        println!("the median is above the goal of {GOAL}");
    }
    Ok(if ratios.iter().all(|&ratio| ratio <= 1.0) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The middle one, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// `NAME NANOSECONDS SUM`; a name may have spaces.
fn job(line: &str) -> Result<Job> {
    let mut words = line.rsplitn(3, ' ');
    let sum = words.next().map(str::to_owned);
    let nanoseconds = words.next().and_then(|word| word.parse::<f64>().ok());
    let name = words.next().map(str::to_owned);
    let read = || Some(Job { name: name?, nanoseconds: nanoseconds?, sum: sum? });
    let job = read().with_context(|| format!("not a job: {line}"))?;
    ensure!(job.nanoseconds > 0.0, "a job without time: {line}");
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read() {
        let read = job("rsync, twice 1000 77").unwrap();
        assert_eq!(
            (read.name.as_str(), read.nanoseconds, read.sum.as_str()),
            ("rsync, twice", 1000.0, "77")
        );
        for wrong in ["a", "a 1", "a x 1", "a 0 1"] {
            assert!(job(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[0.1, 0.5, 0.9]), 0.5);
        assert_eq!(median(&[0.2, 0.4]), f64::midpoint(0.2, 0.4));
    }
}
