//! `cargo xtask proofs`: what is proven of the entropy core, proven again.
//!
//! Arithmetic is shown by a solver, for all numbers of a width: the files of `kernel/random/proofs`, each of which quotes the
//! lines of code that it speaks of. What has states is enumerated by tests, of which this runs the long form. The table in
//! docs/random.md says which is which.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need};

/// For one file, in seconds; all take less than one.
const LIMIT: &str = "-T:60";

/// Runs the proofs: the solver's, then the enumerations and the model in their long form.
#[derive(Args)]
pub struct Proofs {
    /// Only those of the solver, as `cargo xtask ci` does; the tests run there in their short form
    #[arg(long)]
    solver: bool,
}

impl Proofs {
    pub fn run(self) -> Result<ExitCode> {
        timed("the solver", solver)?;
        if !self.solver {
            let random = ["--package", "alea-random", "--lib", "--test", "bounds"];
            timed("credit, admission, bounds, requests", || long(&random))?;
            let random = ["--package", "alea-random", "--test", "never_twice"];
            timed("no key and counter twice", || long(&random))?;
            let model = ["--package", "alea-tests", "--test", "model"];
            timed("three CPUs and their clones", || long(&model))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn timed(what: &str, proof: impl FnOnce() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    proof().with_context(|| what.to_owned())?;
    println!("ok      {what} ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(())
}

/// The long form of tests, in a release build.
fn long(words: &[&str]) -> Result<()> {
    let mut cargo: Command = process::cargo();
    cargo.args(["test", "--release"]).args(words).env("ALEA_PROOFS", "long");
    process::run(&process::show(&cargo), &mut cargo)
}

/// Has every file solved, and sees first that the solver refuses what is wrong.
pub fn solver() -> Result<()> {
    setup::ensure(&[Need::Solver])?;
    let dir = tempfile::tempdir()?;
    let wrong = dir.path().join("wrong.smt2");
    std::fs::write(&wrong, WRONG)?;
    if solve(&wrong).is_ok() {
        bail!("z3 accepts that n + 1 is above n for every n of 32 bits");
    }
    let files = files()?;
    for file in &files {
        solve(file).with_context(|| paths::shown(file))?;
    }
    if files.is_empty() { bail!("no proofs in {}", paths::shown(&folder())) } else { Ok(()) }
}

/// A claim that a counter-example refutes.
const WRONG: &str = "(set-logic QF_BV)
(declare-const n (_ BitVec 32))
(assert (not (bvugt (bvadd n (_ bv1 32)) n)))
(set-info :status unsat)
(check-sat)
";

fn folder() -> PathBuf {
    paths::source("kernel/random/proofs")
}

fn files() -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder())?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|file| file.extension().is_some()).collect();
    files.sort();
    Ok(files)
}

/// Every `check-sat` gives what the `:status` before it says.
fn solve(file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file)?;
    let told = process::output(Command::new("z3").arg(LIMIT).arg(file))?;
    let expected: Vec<&str> = text.lines().filter_map(status).collect();
    let found: Vec<&str> = told.lines().collect();
    if expected.is_empty() || found != expected {
        bail!("z3 says {found:?}, and {expected:?} was claimed");
    }
    Ok(())
}

fn status(line: &str) -> Option<&str> {
    line.strip_prefix("(set-info :status ")?.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proof speaks of the code only as long as its quotations do: `; code:` names a file, `;|` one of its lines.
    #[test]
    fn what_proofs_quote_is_still_there() {
        let files = files().unwrap();
        assert!(files.len() >= 6, "{files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let (mut code, mut quotes) = (String::new(), 0);
            for line in text.lines() {
                if let Some(path) = line.strip_prefix("; code: ") {
                    code = std::fs::read_to_string(paths::source(path)).unwrap();
                } else if let Some(quote) = line.strip_prefix(";| ") {
                    quotes += 1;
                    let found = code.lines().any(|line| line.trim() == quote);
                    assert!(found, "{}: no line `{quote}`", file.display());
                }
            }
            let checks = text.lines().filter(|line| *line == "(check-sat)").count();
            let claims = text.lines().filter_map(status).count();
            assert!(quotes > 0 && checks > 1 && checks == claims, "{}", file.display());
            // Assumptions that contradict each other prove anything.
            assert!(text.contains("(set-info :status sat)"), "{}", file.display());
        }
    }
}
