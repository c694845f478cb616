//! `cargo xtask ci`: the checks that every change has to pass; `.ci/run` runs exactly this.
//!
//! Every check, every test and every test of BusyBox's own suite counts as one in the last line.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use crate::newcomer;

use xtask_bench::baseline;
use xtask_check::residue::wipes;
use xtask_check::test::Test;
use xtask_check::{adopters, checking, miri, mutants, proofs};
use xtask_dist::dist;
use xtask_host::tally::Tally;
use xtask_host::{disk, paths, process};
use xtask_setup::build::UEFI_LOADER;
use xtask_setup::setup::{self, Need, TARGET, UEFI_TARGET};
use xtask_suites::{assess, busybox, debian, random_stats, rooted};
use xtask_tidy::{shrink, tidy};

/// Bytes that a first run leaves below `target/` (9.4 GiB measured, and 1 GB for gdb's root since) with 2 GB for a release beside it, and what
/// a later one may add.
const FIRST_RUN: u64 = 25 << 29;
const LATER_RUN: u64 = 2 << 30;

/// Checks formatting, clippy (host and kernel), tidiness, all tests, BusyBox's own too, and the
/// instruction counts; boots the kernel that checks itself, too.
#[derive(Args)]
pub struct Ci {}

impl Ci {
    pub fn run(self) -> Result<ExitCode> {
        disk::ensure_room(paths::root(), room(), "cargo xtask ci")?;
        let mut tally = Tally::default();
        let mut needs = setup::DEFAULT.to_vec();
        // Xorriso for the release, which is made beside the tests: two set-ups at once would be in each other's way.
        needs.extend([Need::Rustfmt, Need::Clippy, Need::Xorriso]);
        gate(&mut tally, "set-up", || setup::ensure(&needs));
        gate(&mut tally, "format", || cargo(&["fmt", "--all", "--check"]));
        gate(&mut tally, "clippy, host", || clippy(&["--all-targets"]));
        gate(&mut tally, "clippy, kernel", || {
            clippy(&["--package", "alea-kernel", "--target", TARGET])
        });
        gate(&mut tally, "clippy, UEFI", || {
            setup::provide_target(UEFI_TARGET)?;
            clippy(&["--package", UEFI_LOADER, "--target", UEFI_TARGET])
        });
        gate(&mut tally, "alea-random for a kernel, unoptimised", bare_crate);
        gate(&mut tally, "tidy", || tidy::check(paths::root()));
        gate(&mut tally, "links of the documentation", doc_links);
        gate(&mut tally, "proofs of arithmetic", proofs::solver);
        gate(&mut tally, "exceptions only get fewer", || shrink::check(paths::root()));
        tests(&mut tally);
        println!("The kernel that checks itself, on two CPUs:");
        part(&mut tally, "the kernel that checks itself", |tally| {
            checking::check(&mut |tally, name, result| gate(tally, name, || result), tally);
            Ok(())
        });
        println!("Each wipe of the generator left out in turn:");
        part(&mut tally, "the list of wipes", |tally| wipes::check(tally, None));
        println!("BusyBox's own tests on Alea, compared with tests/busybox:");
        part(&mut tally, "BusyBox's own tests", |tally| add(tally, busybox::check()));
        println!("A sample of them while allocations fail:");
        part(&mut tally, "BusyBox's tests without memory", |tally| {
            add(tally, busybox::failing::check())
        });
        in_debian(&mut tally);
        gate(&mut tally, "instruction counts", baseline::check);
        where_possible(&mut tally, "statistics of random bytes", || {
            Ok(match random_stats::sample()? {
                random_stats::Sample::Sound => None,
                random_stats::Sample::Skipped(why) => Some(why),
            })
        });
        gate(&mut tally, "assessment of raw jitter, a sample", assess::sample);
        gate(&mut tally, "mutants of the entropy core, a sample", mutants::sample);
        for (name, check) in adopters::CHECKS {
            where_possible(&mut tally, name, check);
        }
        where_possible(&mut tally, "Miri", || {
            Ok(match miri::check()? {
                miri::Outcome::Passed => None,
                miri::Outcome::Skipped(why) => Some(why),
            })
        });
        Ok(tally.conclude())
    }
}

/// README's commands first, since the tests' artefacts fill the disk; and beside the tests, which wait for guests most of the time, what
/// waits for nothing: a release made twice.
fn tests(tally: &mut Tally) {
    gate(tally, "README's commands in a fresh clone", newcomer::check);
    let release = std::thread::spawn(dist::check);
    part(tally, "tests", |tally| add(tally, Test::default().tally()));
    gate(tally, "two folders make the same release", || {
        release.join().unwrap_or_else(|_| bail!("what compares them has panicked"))
    });
}

/// Programs of Debian, and their own tests.
fn in_debian(tally: &mut Tally) {
    println!("Programs of Debian on Linux and on Alea, a sample:");
    part(tally, "programs of Debian", |tally| add(tally, debian::sample()));
    println!("strace's own tests on Linux and on Alea, a sample:");
    part(tally, "strace's own tests", |tally| add(tally, rooted::strace_sample()));
    println!("gdb's own tests on Linux and on Alea, a sample:");
    part(tally, "gdb's own tests", |tally| add(tally, rooted::gdb_sample()));
}

fn room() -> u64 {
    if paths::checking_kernel().exists() { LATER_RUN } else { FIRST_RUN }
}

/// Runs a part that counts its own results, and says how long it took; whatever kept it from running is one failure.
fn part(tally: &mut Tally, name: &str, tests: impl FnOnce(&mut Tally) -> Result<()>) {
    let start = Instant::now();
    if let Err(error) = tests(tally) {
        gate(tally, name, || Err(error));
    }
    println!("done    {name}: {:.1} s", start.elapsed().as_secs_f64());
}

/// Adds what tests gave.
fn add(tally: &mut Tally, tests: Result<Tally>) -> Result<()> {
    let Tally { passed, failed } = tests?;
    tally.passed += passed;
    tally.failed += failed;
    Ok(())
}

/// Runs one check, says how it went and how long it took, and goes on either way.
fn gate(tally: &mut Tally, name: &str, check: impl FnOnce() -> Result<()>) {
    let start = Instant::now();
    let result = check();
    tally.count(result.is_ok());
    let seconds = start.elapsed().as_secs_f64();
    match result {
        Ok(()) if seconds < 1.0 => println!("ok      {name}"),
        Ok(()) => println!("ok      {name}: {seconds:.1} s"),
        Err(error) => println!("FAILED  {name}: {seconds:.1} s\n{error:#}\n"),
    }
}

/// As [`gate`], for a check that wants tools this machine may not have: a reason instead of a result is said,
/// and counted as neither passed nor failed.
fn where_possible(tally: &mut Tally, name: &str, check: impl FnOnce() -> Result<Option<String>>) {
    match check() {
        Ok(Some(why)) => println!("skipped {name}: {why}"),
        result => gate(tally, name, || result.map(drop)),
    }
}

fn clippy(args: &[&str]) -> Result<()> {
    let mut words = vec!["clippy", "--quiet"];
    words.extend(args);
    words.extend(["--", "-D", "warnings"]);
    cargo(&words)
}

/// The crate that other kernels may use compiles for a target without vector registers as `cargo build` does it.
fn bare_crate() -> Result<()> {
    cargo(&["build", "--quiet", "--package", "alea-random", "--target", TARGET, "--profile", "dev"])
}

/// Every name that a doc comment links to is there, in the kernel and in what runs on the host.
fn doc_links() -> Result<()> {
    let common = ["doc", "--quiet", "--no-deps", "--document-private-items"];
    let kernel = ["--package", "alea-kernel", "--target", TARGET];
    for which in [&kernel[..], &[]] {
        let mut command: Command = process::cargo();
        command.args(common).args(which);
        command.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links");
        process::run(&process::show(&command), &mut command)?;
    }
    Ok(())
}

fn cargo(args: &[&str]) -> Result<()> {
    let mut command: Command = process::cargo();
    command.args(args);
    process::run(&process::show(&command), &mut command)
}
