//! `cargo xtask fuzz`: random and hostile system calls, until the kernel breaks or the time is over.
//!
//! The guest's `/usr/lib/alea/fuzz` is init and draws everything from the seed. A panic (a lock-order report is one), a hang,
//! a process that cannot be killed and lost memory are failures: the seed and the round are named, and that round is run once
//! more with every call told.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::inject::{FailAlloc, Told};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// The guest says something every few seconds; a host may be slow and loaded.
const SILENCE: Duration = Duration::from_secs(600);

/// Lines of the last round's calls that are shown.
const LAST_CALLS: usize = 40;

/// By so many bytes what the kernel holds may differ after the first rounds: caches of free objects and the rooms that it
/// keeps for good are not counted as held.
const ALLOWED: i64 = 16 << 10;

/// By so many KiB free memory may be less than after the first rounds: the rooms, and slabs that are partly used.
const FEWER_FREE: i64 = 8 << 10;

/// Throws random system calls at the kernel and reports what breaks.
#[derive(Args)]
pub struct Fuzz {
    /// How long, in the guest's time
    #[arg(long, value_name = "M", default_value_t = 5.0)]
    minutes: f64,
    /// What everything is drawn from; default: the time of day
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only this round of the seed, with every call told
    #[arg(long, value_name = "R")]
    round: Option<u64>,
    /// Only this kind of attack: a name of `KINDS` in `userland/fuzz/fuzz.c`, such as calls or frames
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// The ordinary kernel, which does not check lock order and invariants
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    fail_alloc: FailAlloc,
    #[command(flatten)]
    machine: MachineArgs,
}

impl Fuzz {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(build::Options { debug_assertions: !self.plain, lto: false })?;
        let seed = self.seed.unwrap_or_else(seed_of_now);
        let mut words = format!("fuzz.seed={seed} fuzz.seconds={:.0}", self.minutes * 60.0);
        if let Some(kind) = &self.kind {
            words.push_str(&format!(" fuzz.kind={kind}"));
        }
        if let Some(rate) = self.fail_alloc.rate {
            words.push_str(&format!(" {}", rate.word()));
        }
        let machine = self.machine.machine()?;
        if let Some(round) = self.round {
            words.push_str(&format!(" fuzz.round={round} fuzz.say=1"));
        }
        println!("seed {seed}, {:.1} minutes", self.minutes);
        let outcome = attack(&machine, &paths::kernel(), &words)?;
        let trouble = trouble(&outcome);
        if self.fail_alloc.rate.is_some() {
            let mut told = Told::default();
            told.add(&outcome.output);
            println!("{told}");
            if self.fail_alloc.write_figures {
                crate::abi::write_injected(&told, usize::from(trouble.is_some()))?;
            }
        }
        let Some(trouble) = trouble else {
            println!("{}", last_line(&outcome.output, "fuzz: end").unwrap_or_default());
            return Ok(ExitCode::SUCCESS);
        };
        let round = last_round(&outcome.output);
        report(&outcome, &trouble);
        println!("FAILED: {trouble}; seed {seed}, round {}", round.unwrap_or(0));
        if let (Some(round), None) = (round, self.round) {
            println!("that round again: cargo xtask fuzz --seed {seed} --round {round}");
            // The whole kernel panics again, or the calls before it are at least known.
            let words = format!("{words} fuzz.round={round} fuzz.say=1");
            let again = attack(&machine, &paths::kernel(), &words)?;
            let lines: Vec<&str> = again.output.lines().collect();
            let from = lines.len().saturating_sub(LAST_CALLS);
            println!("its last calls:\n{}", lines[from..].join("\n"));
        }
        Ok(ExitCode::FAILURE)
    }
}

/// The kernel command line that runs the fuzzer with these options.
pub fn command_line(words: &str) -> String {
    format!("console=ttyS0 quiet rdinit=/usr/lib/alea/fuzz {words}")
}

/// Boots the fuzzer with its options.
pub fn attack(machine: &Machine, kernel: &Path, words: &str) -> Result<Outcome> {
    let line = command_line(words);
    let machine = machine.clone().direct(kernel, Some(paths::programs_initramfs()), &line);
    Guest::start(&machine)?.finish(Limits::idle(SILENCE))
}

/// What went wrong, if something did.
pub fn trouble(outcome: &Outcome) -> Option<String> {
    if outcome.end != End::Exited(0) {
        return Some(match outcome.end {
            End::Panicked => "the kernel panicked".into(),
            End::TimedOut => "the guest hung".into(),
            ref other => format!("{other:?}"),
        });
    }
    if let Some(line) = last_line(&outcome.output, "fuzz: FAILED") {
        return Some(line.into());
    }
    let Some(end) = last_line(&outcome.output, "fuzz: end") else {
        return Some("init ended early".into());
    };
    // Objects that never came back; what else has grown stands beside it.
    let left: Vec<&str> =
        outcome.output.lines().filter_map(|line| line.strip_prefix("fuzz: left: ")).collect();
    if !left.is_empty() {
        return Some(format!("left behind: {}", left.join(", ")));
    }
    let number = |at| end.split_whitespace().nth(at).and_then(|word| word.parse::<i64>().ok());
    let (Some(held), Some(fewer_free)) = (number(2), number(6)) else {
        return Some(format!("not understood: {end}"));
    };
    let lost = match (held, fewer_free) {
        (held, _) if held > ALLOWED => format!("{held} bytes were lost"),
        (_, fewer) if fewer > FEWER_FREE => format!("{fewer} KiB fewer are free"),
        _ => return None,
    };
    let grown = outcome.output.lines().filter_map(|line| line.strip_prefix("fuzz: grown: "));
    Some(format!("{lost}; {}", grown.collect::<Vec<_>>().join(", ")))
}

fn report(outcome: &Outcome, trouble: &str) {
    let kernel = paths::kernel();
    let why = symbolize::panic_report(&kernel, &outcome.output);
    println!("{}", why.unwrap_or_else(|| format!("{trouble}\n{}", outcome.stuck_at(&kernel))));
}

fn last_line<'a>(output: &'a str, start: &str) -> Option<&'a str> {
    output.lines().rev().find(|line| line.starts_with(start))
}

fn last_round(output: &str) -> Option<u64> {
    last_line(output, "fuzz: round")?.split_whitespace().nth(2)?.parse().ok()
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() ^ u64::from(now.subsec_nanos()) << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(end: End, output: &str) -> Outcome {
        let (output, stderr) = (output.to_owned(), String::new());
        Outcome { end, output, stderr, elapsed: Duration::ZERO, traces: Vec::new() }
    }

    #[test]
    fn only_a_whole_run_without_losses_is_good() {
        let good = "fuzz: round 3 calls\nfuzz: end, 12000 bytes more held, 8000 KiB fewer free\n";
        assert_eq!(trouble(&outcome(End::Exited(0), good)), None);
        assert!(trouble(&outcome(End::Panicked, good)).is_some());
        assert!(trouble(&outcome(End::Exited(0), "fuzz: round 3 calls\n")).is_some());
        let lost = "fuzz: end, 20000 bytes more held, 0 KiB fewer free\n";
        assert!(trouble(&outcome(End::Exited(0), lost)).is_some_and(|why| why.contains("lost")));
        let fewer = "fuzz: end, 0 bytes more held, 9000 KiB fewer free\n";
        assert!(trouble(&outcome(End::Exited(0), fewer)).is_some_and(|why| why.contains("fewer")));
        let left = "fuzz: left: tasks +1\nfuzz: end, 0 bytes more held\n";
        assert_eq!(
            trouble(&outcome(End::Exited(0), left)).as_deref(),
            Some("left behind: tasks +1")
        );
        let failed = "fuzz: FAILED: x\nfuzz: end, 0 bytes more held\n";
        assert!(trouble(&outcome(End::Exited(0), failed)).is_some());
        assert_eq!(last_round(good), Some(3));
    }
}
