//! The commands of `cargo xtask` for measuring. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::{bench, experiments, latency, load, profile, report, tools};

#[derive(Subcommand)]
pub enum Command {
    /// Compare Alea with Linux: the same programs, the same QEMU, boots interleaved
    Bench(bench::Bench),
    /// Show where the time of an exec goes
    Profile(profile::Profile),
    /// Write the report's page anew from what was measured, and check how it looks
    Report(report::Report),
    /// Measure how long a task of the highest priority waits while another user does the worst
    Latency(latency::Latency),
    /// Measure how each kernel shares its CPUs among many
    Load(load::Load),
    /// Do the published experiments about random bytes and system calls again, on both kernels
    Experiments(experiments::Experiments),
    /// Measure what strace, gdb, perf and seccomp filters cost a program, on Linux and on Alea
    Tools(tools::Tools),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Bench(c) => c.run(),
            Self::Profile(c) => c.run(),
            Self::Report(c) => c.run(),
            Self::Latency(c) => c.run(),
            Self::Load(c) => c.run(),
            Self::Experiments(c) => c.run(),
            Self::Tools(c) => c.run(),
        }
    }
}
