//! `cargo xtask exhaust`: a user takes all he can get of one kind of object after the other, and the machine must be whole afterwards.
//!
//! The guest's `/usr/lib/alea/exhaust` is init: it tells for each kind whether a process of root's that holds little was killed, how many
//! of its own forks failed meanwhile, whether all of them work again, and what did not come back.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_host::table::Table;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// A round prints one line; memory that is full makes the guest slow, and hosts are busy.
const SILENCE: Duration = Duration::from_secs(600);

/// What the kernel may keep in the end that is no object: tables that have grown with the number of tasks, timers and names.
const ALLOWED_KIB: i64 = 6144;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kernels {
    Alea,
    Linux,
    Both,
}

/// Lets a user take all he can get, of one kind of object after the other and of all at once.
#[derive(Args)]
pub struct Exhaust {
    /// Which kernels
    #[arg(long, value_enum, default_value = "both")]
    kernel: Kernels,
    /// Only these kinds, separated by commas: names of `KINDS` in `userland/exhaust/exhaust.c`, or `all` for all at once
    #[arg(long, value_name = "NAMES", default_value = "")]
    only: String,
    /// How often each kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// How long each kind takes what it can, in the guest's milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    ms: u32,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Exhaust {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox, Need::Linux])?;
        let machine = self.machine.machine()?;
        let words = format!(
            "exhaust.only={} exhaust.rounds={} exhaust.ms={}",
            self.only, self.rounds, self.ms
        );
        let (mut alea, mut linux, mut trouble) = (Vec::new(), Vec::new(), None);
        if self.kernel != Kernels::Linux {
            build::build(self.build)?;
            let outcome = boot(&machine, &paths::kernel(), &words)?;
            trouble = self::trouble(&outcome);
            alea = rounds(&outcome.output);
        }
        if self.kernel != Kernels::Alea {
            build::initramfs()?;
            linux = rounds(&boot(&machine, &paths::vmlinuz(), &words)?.output);
        }
        print!("{}", render(&alea, &linux));
        if let Some(trouble) = trouble {
            println!("FAILED: {trouble}");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Boots, shows what the guest says, and wants it to end well.
fn boot(machine: &Machine, kernel: &Path, words: &str) -> Result<Outcome> {
    let machine = boots(machine.clone(), kernel, words);
    let outcome = Guest::start_echoing(&machine, io::stderr())?.finish(Limits::idle(SILENCE))?;
    if outcome.end != End::Exited(0) {
        let report = symbolize::panic_report(kernel, &outcome.output);
        bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
    }
    Ok(outcome)
}

/// `machine` with a kernel and the rounds that `words` ask for.
pub fn boots(machine: Machine, kernel: &Path, words: &str) -> Machine {
    let line = format!("console=ttyS0 quiet panic=-1 rdinit=/usr/lib/alea/exhaust {words}");
    machine.direct(kernel, Some(paths::programs_initramfs()), &line)
}

/// Boots and waits for the end, silently.
pub fn run(machine: &Machine) -> Result<Outcome> {
    Guest::start(machine)?.finish(Limits::idle(SILENCE))
}

/// What one kind did to the machine.
#[derive(Debug, PartialEq, Eq)]
struct Round {
    kind: String,
    canary_alive: bool,
    /// Forks of init's that failed during it, of so many.
    refused: (u32, u32),
    /// Forks of init's that worked after it, of so many.
    forks: (u32, u32),
    /// How much less memory was free.
    kib: i64,
}

fn rounds(output: &str) -> Vec<Round> {
    output.lines().filter_map(round).collect()
}

fn round(line: &str) -> Option<Round> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["exhaust", kind, _, canary, refused, forks, kib] = words[..] else { return None };
    let pair = |word: &str, name: &str| {
        let (one, all) = word.strip_prefix(name)?.split_once('/')?;
        Some((one.parse().ok()?, all.parse().ok()?))
    };
    Some(Round {
        kind: kind.to_owned(),
        canary_alive: canary == "canary=alive",
        refused: pair(refused, "refused=")?,
        forks: pair(forks, "forks=")?,
        kib: kib.strip_prefix("kib=")?.parse().ok()?,
    })
}

/// What went wrong on Alea, if something did: it must be whole after each kind.
pub fn trouble(outcome: &Outcome) -> Option<String> {
    if outcome.end != End::Exited(0) {
        return Some(format!("{:?}", outcome.end));
    }
    let lines = || outcome.output.lines().map(str::trim_end);
    if let Some(line) = lines().find(|line| line.starts_with("exhaust: FAILED")) {
        return Some(line.into());
    }
    if !lines().any(|line| line == "exhaust-end") {
        return Some("init ended early".into());
    }
    let rounds = rounds(&outcome.output);
    if rounds.is_empty() {
        return Some("there is no kind of that name".into());
    }
    let dead = rounds.iter().find(|round| round.forks.0 != round.forks.1);
    if let Some(round) = dead {
        let (good, all) = round.forks;
        return Some(format!("after {} {good} of {all} forks worked", round.kind));
    }
    let mut kind = String::new();
    for line in lines() {
        if let Some(round) = round(line) {
            kind = round.kind;
        } else if let Some(left) = line.strip_prefix("--- left: ") {
            return Some(format!("{kind} left behind: {left}"));
        }
    }
    let lost: i64 = rounds.iter().map(|round| round.kib).sum();
    (lost > ALLOWED_KIB).then(|| format!("{lost} KiB were lost"))
}

/// What root had to bear on Alea: forks that failed, and his canary's death.
pub fn harm_to_root(outcome: &Outcome) -> Vec<String> {
    let mut harm = Vec::new();
    for Round { kind, canary_alive, refused: (refused, all), .. } in rounds(&outcome.output) {
        if !canary_alive {
            harm.push(format!("{kind}: the canary was killed"));
        }
        if refused > 0 {
            harm.push(format!("{kind}: {refused} of {all} forks failed"));
        }
    }
    harm
}

fn render(alea: &[Round], linux: &[Round]) -> String {
    let mut table = Table::new(&[
        "kind",
        "Alea: root's canary",
        "root's forks failed",
        "KiB lost",
        "Linux: root's canary",
        "root's forks failed",
        "KiB lost",
    ]);
    let longest = if alea.len() >= linux.len() { alea } else { linux };
    for (at, round) in longest.iter().enumerate() {
        let mut row = vec![round.kind.clone()];
        for kernel in [alea, linux] {
            row.extend(kernel.get(at).map_or(["-", "-", "-"].map(str::to_owned), |round| {
                let canary = if round.canary_alive { "alive" } else { "killed" };
                let (refused, all) = round.refused;
                [canary.to_owned(), format!("{refused} of {all}"), round.kib.to_string()]
            }));
        }
        table.row(row);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "exhaust pipes 0 canary=killed refused=2/9 forks=20/20 kib=-4\nexhaust-end\n";

    fn told(output: &str) -> Option<String> {
        let (output, stderr) = (output.to_owned(), String::new());
        let end = End::Exited(0);
        trouble(&Outcome { end, output, stderr, elapsed: Duration::ZERO, traces: Vec::new() })
    }

    #[test]
    fn a_line_is_read_whole() {
        let round = round(GOOD.lines().next().unwrap()).unwrap();
        assert_eq!((round.refused, round.forks, round.kib), ((2, 9), (20, 20), -4));
        assert!(!round.canary_alive && round.kind == "pipes");
    }

    #[test]
    fn root_is_harmed_by_forks_that_fail_and_by_a_death() {
        let end = End::Exited(0);
        let (stderr, traces) = (String::new(), Vec::new());
        let output = GOOD.to_owned();
        let outcome = Outcome { end, output, stderr, elapsed: Duration::ZERO, traces };
        assert_eq!(harm_to_root(&outcome).len(), 2);
    }

    #[test]
    fn a_machine_must_be_whole_afterwards() {
        assert_eq!(told(GOOD), None);
        assert!(told("exhaust-end\n").is_some());
        assert!(told(GOOD.lines().next().unwrap()).is_some());
        assert!(told(&GOOD.replace("20/20", "19/20")).unwrap().contains("19 of 20"));
        assert!(told(&GOOD.replace("kib=-4", "kib=99999")).unwrap().contains("lost"));
        let left = GOOD.replace("exhaust-end", "--- left: pipes +3\nexhaust-end");
        assert_eq!(told(&left).as_deref(), Some("pipes left behind: pipes +3"));
    }
}
