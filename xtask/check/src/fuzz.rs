//! `cargo xtask fuzz`: random and hostile system calls, until the kernel breaks or the time is over.
//!
//! The guest's `/usr/lib/alea/fuzz` is init and draws everything from the seed. A panic (a lock-order report is one), a hang,
//! a process that cannot be killed and lost memory are failures: the seed and the round are named, and that round is run once
//! more with every call told.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use clap::Args;

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::inject::{FailAlloc, Told};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::results::{Case, Verdict};
use xtask_shards::shard::Shard;
use xtask_shards::share::ShardArgs;

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
    #[arg(long, value_name = "R", conflicts_with = "shard")]
    round: Option<u64>,
    /// Only this kind of attack: a name of `KINDS` in `userland/fuzz/fuzz.c`, such as calls or frames
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// The ordinary kernel, which does not check lock order and invariants
    #[arg(long)]
    plain: bool,
    /// So many seeds one after the other, each for that long: S, S + 1 and so on [default: 1, or one for each part of --shard]
    #[arg(long, value_name = "N", conflicts_with = "round", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,
    #[command(flatten)]
    fail_alloc: FailAlloc,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    machine: MachineArgs,
}

/// What came of one seed.
struct Played {
    trouble: Option<String>,
    /// The round that was the last one, if the kernel broke in it.
    round: Option<u64>,
    told: Told,
}

impl Fuzz {
    pub fn run(self) -> Result<ExitCode> {
        let first = match (self.seed, self.shards.shard) {
            (Some(seed), _) => seed,
            (None, None) => seed_of_now(),
            (None, Some(_)) => {
                bail!("the parts divide the seeds from S on: say --seed S, the same for every part")
            }
        };
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(build::Options { debug_assertions: !self.plain, lto: false })?;
        let machine = self.machine.machine()?;
        let seeds = self.seeds_from(first);
        let names: Vec<String> = seeds.keys().cloned().collect();
        let share = self.shards.share(&self.line(&self.whole(first)), &names)?;
        let (mut cases, mut told, mut failed) = (Vec::new(), Told::default(), 0);
        for unit in &share.units {
            let (seed, start) = (seeds[unit], Instant::now());
            // Whatever keeps one seed from being played, the others are.
            let played = self.play(&machine, seed).unwrap_or_else(|error| {
                println!("FAILED: seed {seed}: {error:#}");
                Played { trouble: Some(format!("{error:#}")), round: None, told: Told::default() }
            });
            told += played.told;
            failed += usize::from(played.trouble.is_some());
            cases.push(self.case(unit, seed, &played, start.elapsed()));
        }
        if self.fail_alloc.write_figures {
            crate::abi::write_injected(&told, failed)?;
        }
        if seeds.len() > 1 {
            println!("{} passed, {failed} failed", share.units.len() - failed);
        }
        share.finish(cases)
    }

    /// The seeds of the whole work, by name, from `first` on.
    fn seeds_from(&self, first: u64) -> BTreeMap<String, u64> {
        let parts = self.shards.shard.map_or(1, Shard::count);
        let count = self.seeds.unwrap_or(parts);
        let seed = |at: u32| first.wrapping_add(at.into());
        (0..count).map(seed).map(|seed| (format!("seed {seed}"), seed)).collect()
    }

    /// The options that ask for the whole work.
    fn whole(&self, first: u64) -> Vec<String> {
        let mut words = vec!["--minutes".into(), self.minutes.to_string()];
        words.extend(["--seed".into(), first.to_string()]);
        let count = self.seeds_from(first).len();
        if count > 1 {
            words.extend(["--seeds".into(), count.to_string()]);
        }
        words
    }

    /// The command with these options before those that never change.
    fn line(&self, options: &[String]) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "fuzz".into()];
        words.extend_from_slice(options);
        if let Some(kind) = &self.kind {
            words.extend(["--kind".into(), kind.clone()]);
        }
        words.extend(self.plain.then(|| "--plain".into()));
        words.extend(self.fail_alloc.words());
        words.extend(self.machine.words());
        process::line(words)
    }

    /// The line that tries this seed again: the round that broke the kernel, or all of them.
    fn again(&self, seed: u64, round: Option<u64>) -> String {
        let seed = seed.to_string();
        self.line(&match round {
            Some(round) => ["--seed".into(), seed, "--round".into(), round.to_string()],
            None => ["--minutes".into(), self.minutes.to_string(), "--seed".into(), seed],
        })
    }

    fn case(&self, unit: &str, seed: u64, played: &Played, took: Duration) -> Case {
        let verdict = if played.trouble.is_some() { Verdict::Failed } else { Verdict::Passed };
        let message = played.trouble.as_deref().unwrap_or_default();
        let round = played.round.filter(|_| verdict == Verdict::Failed);
        Case::of(unit, verdict, took.as_secs_f64(), message, &self.again(seed, round))
    }

    /// Throws the calls of one seed, and says what came of it; the round that broke the kernel is played once more.
    fn play(&self, machine: &Machine, seed: u64) -> Result<Played> {
        let mut words = format!("fuzz.seed={seed} fuzz.seconds={:.0}", self.minutes * 60.0);
        if let Some(kind) = &self.kind {
            words.push_str(&format!(" fuzz.kind={kind}"));
        }
        if let Some(rate) = self.fail_alloc.rate {
            words.push_str(&format!(" {}", rate.word()));
        }
        if let Some(round) = self.round {
            words.push_str(&format!(" fuzz.round={round} fuzz.say=1"));
        }
        println!("seed {seed}, {:.1} minutes", self.minutes);
        let outcome = attack(machine, &paths::kernel(), &words)?;
        let trouble = trouble(&outcome);
        let mut told = Told::default();
        told.add(&outcome.output);
        if self.fail_alloc.rate.is_some() {
            println!("{told}");
        }
        let Some(trouble) = trouble else {
            println!("{}", last_line(&outcome.output, "fuzz: end").unwrap_or_default());
            return Ok(Played { trouble: None, round: None, told });
        };
        let round = last_round(&outcome.output);
        report(&outcome, &trouble);
        println!("FAILED: {trouble}; seed {seed}, round {}", round.unwrap_or(0));
        if let (Some(round), None) = (round, self.round) {
            println!("that round again: {}", self.again(seed, Some(round)));
            // The whole kernel panics again, or the calls before it are at least known.
            let words = format!("{words} fuzz.round={round} fuzz.say=1");
            let again = attack(machine, &paths::kernel(), &words)?;
            let lines: Vec<&str> = again.output.lines().collect();
            let from = lines.len().saturating_sub(LAST_CALLS);
            println!("its last calls:\n{}", lines[from..].join("\n"));
        }
        // What is lost or left behind at the end is the doing of all rounds.
        let round = round.filter(|_| outcome.end != End::Exited(0));
        Ok(Played { trouble: Some(trouble), round, told })
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
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        fuzz: Fuzz,
    }

    fn asked(words: &str) -> Fuzz {
        let words = ["fuzz"].into_iter().chain(words.split_whitespace());
        <Line as clap::Parser>::try_parse_from(words).unwrap().fuzz
    }

    #[test]
    fn parts_have_seeds_of_their_own() {
        let all = |words: &str| asked(words).seeds_from(301).into_values().collect::<Vec<_>>();
        assert_eq!(all("--seed 301"), [301]);
        assert_eq!(all("--seed 301 --shard 2/4"), [301, 302, 303, 304]);
        assert_eq!(all("--seed 301 --seeds 6 --shard 2/4").len(), 6);
        assert!(asked("--shard 1/4").run().is_err_and(|why| why.to_string().contains("--seed S")));
    }

    #[test]
    fn the_line_that_repeats_has_the_options_that_matter() {
        let fuzz = asked(
            "--seed 301 --seeds 4 --shard 2/4 --minutes 0.5 --kind calls --smp 2 --fail-alloc 400,2",
        );
        let rest = "--kind calls --fail-alloc 400,2 --smp 2";
        assert_eq!(
            fuzz.again(302, Some(17)),
            format!("cargo xtask fuzz --seed 302 --round 17 {rest}")
        );
        assert_eq!(
            fuzz.again(302, None),
            format!("cargo xtask fuzz --minutes 0.5 --seed 302 {rest}")
        );
        let whole = fuzz.line(&fuzz.whole(301));
        assert_eq!(whole, format!("cargo xtask fuzz --minutes 0.5 --seed 301 --seeds 4 {rest}"));
        // They are taken as they are.
        let again = asked(fuzz.again(302, Some(17)).strip_prefix("cargo xtask fuzz ").unwrap());
        assert_eq!((again.seed, again.round, again.machine.smp), (Some(302), Some(17), 2));
    }
}
