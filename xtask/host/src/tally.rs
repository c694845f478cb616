//! How many checks passed, whoever made them.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::process;

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

    /// Runs a `cargo test`, shows its output and counts its results.
    pub fn run(&mut self, cargo: &mut Command) -> Result<()> {
        let mut child = cargo
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let output = child.stdout.take().context("cargo has no standard output")?;
        let failed_before = self.failed;
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            self.add_line(&line);
        }
        let status = child.wait()?;
        if !status.success() && self.failed == failed_before {
            eprintln!("error: `{}` failed ({status}) before all tests ran", process::show(cargo));
            self.failed += 1;
        }
        Ok(())
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
