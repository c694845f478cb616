//! `cargo xtask run`: everything from nothing to a shell on Alea, or to one command on a root of the user's own (`xtask_run`).
//!
//! Without either: with a person at the terminal it is a shell; without, a demonstration that ends by itself and
//! whose exit status says whether all of it worked.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::boot;
use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::Machine;
use xtask_guest::symbolize;
use xtask_host::{paths, term};
use xtask_run::options::RunOptions;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// What the guest's script prints last, if everything worked.
const COMPLETE: &str = "demonstration: complete";

/// Boots Alea to a BusyBox shell; with no terminal, plays a short demonstration and powers off. With a root or a command: runs
/// that, and ends with its exit status (128 + signal for a death by signal; 125 if the kernel or the machine failed).
#[derive(Args)]
pub struct Run {
    /// Play the demonstration even on a terminal
    #[arg(long)]
    demo: bool,
    /// In the demonstration, the silence that counts as a hang
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    hang_after: u64,
    #[command(flatten)]
    own: RunOptions,
    #[command(flatten)]
    build: build::Options,
}

impl Run {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build_own(self.build)?;
        if self.own.wanted() {
            return Ok(own_root(self.own));
        }
        let machine = self.own.machine.machine()?;
        if self.demo || !term::interactive() {
            self.demonstrate(machine)
        } else {
            self.shell(machine)
        }
    }

    fn shell(self, machine: Machine) -> Result<ExitCode> {
        let mut line = String::from("console=ttyS0");
        if let Some((columns, rows)) = term::size() {
            line.push_str(&format!(" alea.rows={rows} alea.columns={columns}"));
        }
        if let Ok(name) = std::env::var("TERM") {
            line.push_str(&format!(" alea.term={name}"));
        }
        boot::join(&self.boots(machine, &line), Limits::NONE, &paths::kernel())
    }

    fn demonstrate(self, machine: Machine) -> Result<ExitCode> {
        let hang = Limits::idle(Duration::from_secs(self.hang_after));
        let limits = if self.own.debug { Limits::NONE } else { hang };
        let machine = self.boots(machine, "console=ttyS0 rdinit=/usr/lib/alea/demo");
        let outcome = Guest::start_echoing(&machine, std::io::stdout())?.finish(limits)?;
        Ok(verdict(&outcome))
    }

    fn boots(&self, machine: Machine, line: &str) -> Machine {
        let line = format!("{line} {}", self.own.append);
        let machine = machine.debugged(self.own.debug);
        machine.direct(paths::kernel(), Some(paths::initramfs()), line.trim_end())
    }
}

/// Runs one command on the user's own root, or boots its own init; what is built must be there. Whatever keeps it from running is
/// said, and is status 125.
pub fn own_root(own: RunOptions) -> ExitCode {
    let ended = match &own.init {
        Some(init) => boot_init(&own, init),
        None => own.run().map(ExitCode::from),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(xtask_run::FAILED)
    })
}

fn boot_init(own: &RunOptions, init: &str) -> Result<ExitCode> {
    let limits = Limits { total: own.timeout.map(Duration::from_secs), idle: None };
    boot::join_init(&own.booting(init)?, limits, &own.kernel_file()?)
}

/// Says what went wrong, if anything did.
fn verdict(outcome: &Outcome) -> ExitCode {
    let complete = outcome.output.lines().any(|line| line.trim_end() == COMPLETE);
    if complete && outcome.end == End::Exited(0) {
        return ExitCode::SUCCESS;
    }
    eprintln!();
    match symbolize::panic_trace(&paths::kernel(), &outcome.output) {
        Some(trace) => eprintln!("{trace}"),
        None => eprintln!("{}", outcome.stuck_at(&paths::kernel())),
    }
    let why = match &outcome.end {
        End::Exited(0) => "the demonstration did not get to its end".to_owned(),
        End::Exited(status) => format!("QEMU exited with status {status}"),
        End::Panicked => "the kernel panicked".to_owned(),
        End::TimedOut => "the guest hung".to_owned(),
        End::Signalled(signal) => format!("signal {signal} killed QEMU"),
    };
    eprintln!("{}\nerror: {why}", outcome.stderr.trim());
    ExitCode::FAILURE
}
