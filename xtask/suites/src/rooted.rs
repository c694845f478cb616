//! `cargo xtask strace`: the own tests of a program of Debian's, in a root of Debian in which they were built, on Linux and on Alea.
//!
//! Source and tests are Debian's package. `tests/NAME/build.sh` builds them in the root when that is made, once, and `tests/NAME/run.sh`
//! runs them in the guest. How each test ends must be the same on both kernels, but for what `tests/NAME/known.toml` explains.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;

use xtask_host::tally::Tally;
use xtask_host::{paths, process};

use crate::debian::root;
use crate::outcomes::{self, Outcomes};
use crate::programs::MARK;

/// A suite: its folder in `tests`, and what the root must have to build and to run it.
struct Suite {
    name: &'static str,
    packages: &'static [&'static str],
    /// Seconds for all tests.
    limit: u64,
    /// Short ones of each kind, which CI runs.
    sample: &'static [&'static str],
}

const STRACE: Suite = Suite {
    name: "strace",
    packages: &["dpkg-dev", "gawk", "gcc", "iproute2", "libc6-dev", "make", "procps"],
    limit: 7200,
    sample: &[
        "attach-p-cmd.test",
        "count-f.test",
        "detach-stopped.test",
        "execve.test",
        "fork-f.gen.test",
        "futex.test",
        "nanosleep.gen.test",
        "ptrace_syscall_info.gen.test",
        "qual_inject-signal.test",
        "seccomp-strict.test",
        "status-detached.test",
        "strace-D.test",
    ],
};

/// Runs strace's own tests on Linux and Alea, and compares them.
#[derive(Args)]
pub struct Strace {
    #[command(flatten)]
    options: Options,
}

impl Strace {
    pub fn run(self) -> Result<ExitCode> {
        self.options.run(&STRACE)
    }
}

/// CI's part of it.
pub fn sample() -> Result<Tally> {
    compare(&STRACE, &words(STRACE.sample), &Options { smp: 2, ..Options::default() })
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
        let tests = if self.sample { words(suite.sample) } else { self.tests.clone() };
        if let Some(only) = &self.only {
            print!("{}", ran(suite, &provide(suite, self.fresh)?, only, &tests, self.smp)?);
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
    let root = provide(suite, options.fresh)?;
    let on = |kernel| ran(suite, &root, kernel, tests, options.smp);
    let linux = match &options.linux {
        Some(file) => fs::read_to_string(file).with_context(|| paths::shown(file))?,
        None => on("linux")?,
    };
    let asked = |all: Outcomes| -> Outcomes {
        all.into_iter().filter(|(test, _)| tests.is_empty() || tests.contains(test)).collect()
    };
    let (linux, alea) = (asked(outcomes::read(&linux)), outcomes::read(&on("alea")?));
    if let Some(none) = tests.iter().find(|test| !linux.contains_key(*test)) {
        bail!("{} has no test {none}", suite.name);
    }
    let known = outcomes::known(suite.name)?;
    Ok(outcomes::compare(&linux, &alea, &known))
}

/// The tar of the root in which the suite was built.
fn provide(suite: &Suite, fresh: bool) -> Result<PathBuf> {
    let build = script(suite, "build.sh")?;
    let hook = format!(
        "{}cat > \"$1/build.sh\" <<'END-OF-BUILD'\n{build}END-OF-BUILD\n\
         chroot \"$1\" /bin/sh /build.sh\nrm \"$1/build.sh\"\n",
        root::hook(&[], false)
    );
    root::tar(suite.packages, &hook, fresh)
}

fn script(suite: &Suite, file: &str) -> Result<String> {
    let file = paths::source(&format!("tests/{}/{file}", suite.name));
    fs::read_to_string(&file).with_context(|| paths::shown(&file))
}

/// All that the tests print on `kernel`, which is kept as it comes in `target/alea/NAME-KERNEL.txt`: an error if they were not all
/// run.
fn ran(suite: &Suite, root: &Path, kernel: &str, tests: &[String], smp: u32) -> Result<String> {
    let log = paths::alea().join(format!("{}-{kernel}.txt", suite.name));
    println!("running on {kernel}, to be read in {} ...", paths::shown(&log));
    let mut command = process::cargo();
    command.args(["xtask", "run", "--root"]).arg(root);
    command.args(["--kernel", kernel, "--smp", &smp.to_string()]);
    command.args(["--timeout", &suite.limit.to_string()]);
    command.args(["--", "/bin/sh", "-c", &script(suite, "run.sh")?, "run"]).args(tests);
    // Whoever stops this program stops the machine, too.
    let mut command = process::bound(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().context("cannot start cargo")?;
    let lines = BufReader::new(child.stdout.take().context("no standard output")?);
    let mut kept = File::create(&log).with_context(|| paths::shown(&log))?;
    let mut output = String::new();
    for line in lines.split(b'\n') {
        let line = String::from_utf8_lossy(&line?).replace('\r', "") + "\n";
        kept.write_all(line.as_bytes())?;
        output.push_str(&line);
    }
    let status = child.wait()?;
    if !output.contains(&format!("{MARK}end")) {
        bail!(
            "{kernel} did not run all tests of {} ({status}): see {}",
            suite.name,
            paths::shown(&log)
        );
    }
    Ok(output)
}
