//! The commands of `cargo xtask` for other people's suites. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::{
    assess, busybox, debian, liburing, random_stats, rooted, runs, runtimes, stress, vdso,
};

#[derive(Subcommand)]
pub enum Command {
    /// Run BusyBox's own tests, and compare each result with Linux's
    Busybox(busybox::Suite),
    /// Run Linux's self tests of the vDSO, and Go's of random numbers, on both kernels
    Vdso(vdso::Vdso),
    /// Run liburing's own tests of io_uring on both kernels, and compare how each ends
    Liburing(liburing::Liburing),
    /// Run strace's own tests on both kernels, and compare how each ends
    Strace(rooted::Strace),
    /// Run gdb's own tests on both kernels, and compare each of their verdicts
    Gdb(rooted::Gdb),
    /// Run the own tests of Go, Python and Linux on Linux and on Alea, and compare them
    Runtimes(runtimes::Runtimes),
    /// Try what README says runs on Alea, and what it says does not
    Runs(runs::Runs),
    /// Run programs of Debian on Linux and on Alea, and compare what they print
    Debian(debian::Debian),
    /// Run all stressors of Debian's stress-ng on Linux and on Alea, and compare their verdicts
    Stress(stress::Stress),
    /// Put what user space reads, and the raw jitter, through statistical tests
    RandomStats(random_stats::RandomStats),
    /// Assess the entropy of raw jitter in the form of NIST SP 800-90B
    Assess(assess::Assess),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Busybox(c) => c.run(),
            Self::Vdso(c) => c.run(),
            Self::Liburing(c) => c.run(),
            Self::Strace(c) => c.run(),
            Self::Gdb(c) => c.run(),
            Self::Runtimes(c) => c.run(),
            Self::Runs(c) => c.run(),
            Self::Debian(c) => c.run(),
            Self::Stress(c) => c.run(),
            Self::RandomStats(c) => c.run(),
            Self::Assess(c) => c.run(),
        }
    }
}
