//! `cargo xtask strace` and `cargo xtask gdb`: the own tests of a program of Debian's, in a root of Debian in which they were built, on
//! Linux and on Alea.
//!
//! Source and tests are Debian's package. `tests/NAME/build.sh` builds them in the root when that is made, once, and `tests/NAME/run.sh`
//! runs them in the guest. How each test ends must be the same on both kernels, but for what `tests/NAME/known.toml` explains. What
//! differs is asked for once more on both.

mod boots;
mod gdb;
mod strace;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use xtask_host::paths;
use xtask_host::tally::Tally;

use crate::debian::root;
use crate::outcomes::{self, Outcomes};

pub use gdb::{Gdb, sample as gdb_sample};
pub use strace::{Strace, sample as strace_sample};

/// A suite: its folder in `tests`, and what the root must have to build and to run it.
struct Suite {
    name: &'static str,
    packages: &'static [&'static str],
    /// All tests stand in `tests/NAME/names`, which the root gets as `/names` before it is built. With such a list a machine that stops
    /// takes one test with it: another machine goes on with the next.
    is_listed: bool,
    /// Seconds in which a test ends or is taken for one that has stopped the machine.
    silence: u64,
    /// Short ones of each kind.
    sample: &'static [&'static str],
    /// How the tests ended, from what the guest printed.
    read: fn(&str) -> Outcomes,
}

#[derive(Args, Default)]
struct Options {
    /// Tests, by their names; default: all
    tests: Vec<String>,
    /// Only a few that are short
    #[arg(long, conflicts_with = "tests")]
    sample: bool,
    /// Run on this kernel only, and print what the tests print
    #[arg(long, value_name = "alea|linux", value_parser = ["alea", "linux"])]
    only: Option<String>,
    /// What Linux printed in an earlier run, instead of a boot of Linux
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    linux: Option<PathBuf>,
    /// The number of CPUs
    #[arg(long, default_value_t = 2)]
    smp: u32,
    /// Make the root anew, with today's packages
    #[arg(long)]
    fresh: bool,
}

impl Options {
    fn run(self, suite: &Suite) -> Result<ExitCode> {
        let tests = match (self.sample, self.tests.is_empty()) {
            (true, _) => words(suite.sample),
            (false, true) => suite.names()?,
            (false, false) => self.tests.clone(),
        };
        if let Some(only) = &self.only {
            let root = suite.root(&self)?;
            print!("{}", boots::ran(suite, &root, only, &tests, self.smp)?);
            return Ok(ExitCode::SUCCESS);
        }
        compare(suite, &tests, &self).map(Tally::conclude)
    }
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Runs the tests on both kernels, and says of each how it ended.
fn compare(suite: &Suite, tests: &[String], options: &Options) -> Result<Tally> {
    let root = suite.root(options)?;
    let on = |kernel: &str, tests: &[String]| {
        boots::ran(suite, &root, kernel, tests, options.smp).map(|output| (suite.read)(&output))
    };
    let mut linux = match &options.linux {
        Some(file) => (suite.read)(&fs::read_to_string(file).with_context(|| paths::shown(file))?),
        None => on("linux", tests)?,
    };
    linux.retain(|test, _| tests.is_empty() || tests.iter().any(|of| of == outcomes::whole(test)));
    if let Some(none) = tests.iter().find(|test| !linux.contains_key(*test)) {
        bail!("{} has no test {none}", suite.name);
    }
    let mut alea = on("alea", tests)?;
    let known = outcomes::known(suite.name)?;
    let again = outcomes::unexplained(&linux, &alea, &known);
    if !again.is_empty() {
        println!("once more: {}", again.join(" "));
        let second = [on("linux", &again)?, on("alea", &again)?];
        outcomes::settle(&mut linux, &mut alea, &second);
    }
    Ok(outcomes::compare(&linux, &alea, &known))
}

impl Suite {
    /// The tar of the root in which the suite was built; one for the sample of a list is made much sooner.
    fn root(&self, options: &Options) -> Result<PathBuf> {
        let mut hook = root::hook(&[], false);
        let is_sample = options.sample && self.is_listed;
        let names = if is_sample { words(self.sample) } else { self.names()? }.join("\n");
        for (name, text) in [("names", names), ("build.sh", self.script("build.sh")?)] {
            hook += &format!("cat > \"$1/{name}\" <<'END-OF-FILE'\n{text}\nEND-OF-FILE\n");
        }
        hook += "chroot \"$1\" /bin/sh /build.sh\nrm \"$1/build.sh\"\n";
        root::tar(self.packages, &hook, options.fresh)
    }

    /// All tests, where they are listed.
    fn names(&self) -> Result<Vec<String>> {
        if !self.is_listed {
            return Ok(Vec::new());
        }
        Ok(self.script("names")?.lines().map(str::to_owned).collect())
    }

    fn script(&self, file: &str) -> Result<String> {
        let file = paths::source(&format!("tests/{}/{file}", self.name));
        fs::read_to_string(&file).with_context(|| paths::shown(&file))
    }
}
