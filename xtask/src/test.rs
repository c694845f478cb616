//! `cargo xtask test`: sets up, builds, and runs every test there is.
//!
//! The pure crates, xtask and the tests that boot QEMU are all cargo tests; this makes their
//! artefacts first and adds up their results afterwards.

use std::io::{BufRead, BufReader};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use crate::{build, process, setup};

/// Runs the host tests and the tests that boot QEMU.
#[derive(Args, Default)]
pub struct Test {
    /// Arguments for `cargo test`, such as `-p alea-tests --test boot`, a name, or `-- --nocapture`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
    #[command(flatten)]
    build: build::Options,
}

/// How many tests did what.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl Tally {
    /// Counts one more check.
    pub fn count(&mut self, passed: bool) {
        if passed { self.passed += 1 } else { self.failed += 1 }
    }

    /// Prints the line that everything ends with.
    pub fn conclude(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn add_line(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        let number = |word: &str| {
            let part = result.split([';', '.']).find(|part| part.trim_end().ends_with(word))?;
            part.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed").unwrap_or(0);
    }
}

impl Test {
    pub fn run(self) -> Result<ExitCode> {
        Ok(self.tally()?.conclude())
    }

    /// Runs the tests and counts; whatever keeps them from running is one failure.
    pub fn tally(self) -> Result<Tally> {
        setup::ensure(&setup::DEFAULT)?;
        build::build(self.build)?;
        let mut tally = Tally::default();
        let mut cargo = process::cargo();
        cargo.args(["test", "--no-fail-fast"]).args(&self.args);
        let mut child = cargo
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let output = child.stdout.take().context("cargo has no standard output")?;
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            tally.add_line(&line);
        }
        let status = child.wait()?;
        if !status.success() && tally.failed == 0 {
            eprintln!("error: `{}` failed ({status}) before all tests ran", process::show(&cargo));
            tally.failed = 1;
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "test a ... ok",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            tally.add_line(line);
        }
        assert_eq!(tally, Tally { passed: 34, failed: 2 });
    }
}
