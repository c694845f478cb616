//! `cargo xtask soak`: everything at once on several CPUs for a while.
//!
//! The work is `userland/stress/soak.c`, which checks itself; this boots it and reads the summary.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// The guest prints a sign of life every 30 seconds, and gives up a kind of work that makes no progress for ten minutes.
const SILENCE: Duration = Duration::from_secs(300);

/// Runs forks, execs, threads, pipes, signals, mappings, sockets and draws together.
#[derive(Args)]
pub struct Soak {
    /// How long
    #[arg(long, value_name = "M", default_value_t = 1)]
    minutes: u64,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Soak {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(self.build)?;
        let time = Duration::from_secs(self.minutes * 60);
        let machine = boots(self.machine.machine()?, &paths::kernel(), time);
        let outcome =
            Guest::start_echoing(&machine, io::stdout())?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let kernel = paths::kernel();
            let report = symbolize::panic_report(&kernel, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or(outcome.stuck_at(&kernel)));
        }
        Ok(if is_good(&outcome) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Boots and waits for the end, silently.
pub fn run(machine: &Machine) -> Result<Outcome> {
    Guest::start(machine)?.finish(Limits::idle(SILENCE))
}

/// Whether all the work came to its end, and the guest with it.
pub fn is_good(outcome: &Outcome) -> bool {
    outcome.end == End::Exited(0)
        && outcome.output.lines().any(|line| line.trim_end() == "soak-end ok")
}

/// `machine` with a kernel and the work for so long.
pub fn boots(machine: Machine, kernel: &Path, time: Duration) -> Machine {
    let line = format!(
        "console=ttyS0 quiet panic=-1 rdinit=/usr/lib/alea/soak alea.soak={}",
        time.as_secs()
    );
    machine.direct(kernel, Some(paths::programs_initramfs()), &line)
}
