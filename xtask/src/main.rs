//! `cargo xtask`: the command line. Parses it and calls the one module that does the work.
#![forbid(unsafe_code)]

mod ci;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask_bench::{bench, latency, profile, report};
use xtask_check::{
    abi, adopters, boot, fuzz, image, mutants, proofs, residue, run, snapshots, soak, test, twins,
};
use xtask_setup::{build, setup};
use xtask_suites::{assess, busybox, random_stats, runtimes, vdso};
use xtask_tidy::{syscalls, tidy};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Build, boot, test and measure Alea", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing: Rust's bare-metal target, QEMU, a C compiler, BusyBox, Linux
    Setup(setup::Setup),
    /// Build the kernel and the initramfs into target/alea/
    Build(build::Build),
    /// Boot Alea to a shell; with no terminal, play a demonstration and power off
    Run(run::Run),
    /// Boot any kernel and initramfs, on any CPU model and number of CPUs
    Boot(boot::Boot),
    /// Run the host tests and the tests that boot QEMU
    Test(test::Test),
    /// Run the ABI programs of tests/abi, and compare with what Linux printed
    Abi(abi::Abi),
    /// Run BusyBox's own tests, and compare each result with Linux's
    Busybox(busybox::Suite),
    /// Run Linux's self tests of the vDSO, and Go's of random numbers, on both kernels
    Vdso(vdso::Vdso),
    /// Run the own tests of Go and Python on Linux and on Alea, and compare them
    Runtimes(runtimes::Runtimes),
    /// Compare Alea with Linux: the same programs, the same QEMU, boots interleaved
    Bench(bench::Bench),
    /// Show where the time of an exec goes
    Profile(profile::Profile),
    /// Write the report's page anew from what was measured, and check how it looks
    Report(report::Report),
    /// Put what user space reads, and the raw jitter, through statistical tests
    RandomStats(random_stats::RandomStats),
    /// Assess the entropy of raw jitter in the form of NIST SP 800-90B
    Assess(assess::Assess),
    /// Run everything at once, on several CPUs, for a while
    Soak(soak::Soak),
    /// Measure how long a task of the highest priority waits while another user does the worst
    Latency(latency::Latency),
    /// Throw random and hostile system calls at the kernel
    Fuzz(fuzz::Fuzz),
    /// Check alea-random as its adopters use it: features, oldest Rust, architectures, package, interface
    Crate(adopters::Crate),
    /// Stop after each draw, and search memory and registers for what was drawn
    Residue(residue::Residue),
    /// Change the entropy core in every way there is, and want a test to fail each time
    Mutants(mutants::Mutants),
    /// Prove again what is proven of the entropy core
    Proofs(proofs::Proofs),
    /// Boot a machine without entropy twice, attack it, and compare all bytes that it gave
    Twins(twins::Twins),
    /// Save the machine at every instruction of draws and reseeds, and compare twins of each snapshot
    Snapshots(snapshots::Snapshots),
    /// Make a bootable ISO with Limine
    Image(image::Image),
    /// Write docs/abi.md from the system-call table
    Syscalls(syscalls::Syscalls),
    /// Check the house rules
    Tidy(tidy::Tidy),
    /// Run all checks: format, clippy, tidy, test, busybox
    Ci(ci::Ci),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Setup(c) => c.run(),
        Command::Build(c) => c.run(),
        Command::Run(c) => c.run(),
        Command::Boot(c) => c.run(),
        Command::Test(c) => c.run(),
        Command::Abi(c) => c.run(),
        Command::Busybox(c) => c.run(),
        Command::Vdso(c) => c.run(),
        Command::Runtimes(c) => c.run(),
        Command::Bench(c) => c.run(),
        Command::Profile(c) => c.run(),
        Command::Report(c) => c.run(),
        Command::RandomStats(c) => c.run(),
        Command::Assess(c) => c.run(),
        Command::Soak(c) => c.run(),
        Command::Latency(c) => c.run(),
        Command::Fuzz(c) => c.run(),
        Command::Crate(c) => c.run(),
        Command::Residue(c) => c.run(),
        Command::Mutants(c) => c.run(),
        Command::Proofs(c) => c.run(),
        Command::Twins(c) => c.run(),
        Command::Snapshots(c) => c.run(),
        Command::Image(c) => c.run(),
        Command::Syscalls(c) => c.run(),
        Command::Tidy(c) => c.run(),
        Command::Ci(c) => c.run(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
