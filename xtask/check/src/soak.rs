//! `cargo xtask soak`: everything at once on several CPUs for a while.
//!
//! The work is `userland/stress/soak.c`, which checks itself; this boots it and reads the summary.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::results::{Case, Verdict};
use xtask_shards::shard::Shard;
use xtask_shards::share::ShardArgs;

/// The guest prints a sign of life every 30 seconds, and gives up a kind of work that makes no progress for ten minutes.
const SILENCE: Duration = Duration::from_secs(300);

/// Runs forks, execs, threads, pipes, signals, mappings, sockets and draws together.
#[derive(Args)]
pub struct Soak {
    /// How long
    #[arg(long, value_name = "M", default_value_t = 1)]
    minutes: u64,
    /// So often, each time in a new machine [default: 1, or once for each part of --shard]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: Option<u32>,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Soak {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(self.build)?;
        let machine = self.machine.machine()?;
        let rounds = self.rounds.unwrap_or(self.shards.shard.map_or(1, Shard::count));
        let names: Vec<String> = (1..=rounds).map(|round| format!("round {round}")).collect();
        let share = self.shards.share(&self.line(rounds), &names)?;
        let (mut cases, mut failed) = (Vec::new(), 0);
        for unit in &share.units {
            let start = Instant::now();
            // Whatever keeps one round from being done, the others are.
            let trouble = self.once(&machine).unwrap_or_else(|error| Some(format!("{error:#}")));
            let verdict = if trouble.is_some() { Verdict::Failed } else { Verdict::Passed };
            if let Some(why) = &trouble {
                println!("FAILED  {unit}: {why}");
                failed += 1;
            }
            let (took, why) = (start.elapsed().as_secs_f64(), trouble.unwrap_or_default());
            cases.push(Case::of(unit, verdict, took, &why, &self.line(1)));
        }
        if rounds > 1 {
            println!("{} passed, {failed} failed", share.units.len() - failed);
        }
        share.finish(cases)
    }

    /// The command that does so many rounds.
    fn line(&self, rounds: u32) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "soak".into()];
        words.extend(["--minutes".into(), self.minutes.to_string()]);
        if rounds > 1 {
            words.extend(["--rounds".into(), rounds.to_string()]);
        }
        words.extend(self.machine.words());
        words.extend(self.build.words());
        process::line(words)
    }

    /// One round in a machine of its own; what went wrong, if something did.
    fn once(&self, machine: &Machine) -> Result<Option<String>> {
        let time = Duration::from_secs(self.minutes * 60);
        let machine = boots(machine.clone(), &paths::kernel(), time);
        let outcome =
            Guest::start_echoing(&machine, io::stdout())?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let kernel = paths::kernel();
            let report = symbolize::panic_report(&kernel, &outcome.output);
            let report = report.unwrap_or(outcome.stuck_at(&kernel));
            return Ok(Some(format!("{}\n{report}", outcome.describe())));
        }
        Ok((!is_good(&outcome)).then(|| said(&outcome.output)))
    }
}

/// What the guest itself found wrong, and how it ended.
fn said(output: &str) -> String {
    let wrong = |line: &&str| {
        let is_sign_of_life = line.ends_with(" s") || line.ends_with(" CPUs");
        line.starts_with("soak: ") && !is_sign_of_life || line.starts_with("soak-")
    };
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(wrong).collect();
    format!("the work did not come to a good end\n{}", lines.join("\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_found_wrong_is_told() {
        let output = "soak: 60 s on 2 CPUs\nsoak: 30 s\nsoak: pipes hangs\r\nsoak pipes 3\nsoak-end FAILED\n";
        assert_eq!(
            said(output),
            "the work did not come to a good end\nsoak: pipes hangs\nsoak-end FAILED"
        );
    }
}
