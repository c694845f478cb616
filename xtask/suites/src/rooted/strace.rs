//! strace's own tests: each is a script or a program that passes, fails or is skipped.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use xtask_host::tally::Tally;

use super::{Options, Suite, compare, words};
use crate::outcomes;

const STRACE: Suite = Suite {
    name: "strace",
    packages: &["dpkg-dev", "gawk", "gcc", "iproute2", "libc6-dev", "make", "procps"],
    is_listed: false,
    silence: 900,
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
    read: outcomes::read,
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
