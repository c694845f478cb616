//! The guard of the instruction counts: `tests/bench/baseline.json`, and what may differ from it.
//!
//! Guest instructions repeat within a hundredth whatever the host does, so that growth can be
//! refused where wall time could only be watched. Nothing is pinned for it: the guest draws its
//! addresses and seeds as always, and medians over several boots level that out. What does change
//! the counts are other tools, so the baseline names those it was made with; with others the limit
//! is wider, and the message says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::bench::{Bench, Kernel};
use crate::profile::{Phase, Profile};
use xtask_guest::qemu;
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, process};
use xtask_setup::build;

/// The benchmarks that must not grow.
const GUARDED: [&str; 14] = [
    "getpid",
    "getrandom_16",
    "vdso_getrandom_16",
    "fork_exit",
    "exec_true",
    "shell_noop",
    "tcp_1k",
    "tcp_4k",
    "tcp_128k",
    "pipe_4k",
    "pipe_64k",
    "unix_64k",
    "touch_32m",
    "read_tmpfs_128k",
];

/// The phase of exec that is this project's own: what `AT_RANDOM` costs. It is too small a part of `exec_true` to show there.
const GUARDED_PHASE: &str = "random";

/// Boots whose samples are taken together.
const BOOTS: u32 = 3;

/// The boots that confirm a growth. The addresses that a boot draws decide how many page tables a process has: `fork_exit`
/// varies by 1.5 % from boot to boot, and the median of three boots by up to 3.2 %.
const BOOTS_TO_CONFIRM: u32 = 9;

/// How much a figure may grow when all tools are those of the baseline.
const LIMIT: f64 = 0.03;

/// The same with other tools: another compiler may be worth some percent either way.
const LIMIT_OTHER_TOOLS: f64 = 0.10;

/// How many instructions a phase's figure may grow by without anything being said of it.
const PHASE_NOISE: f64 = 60.0;

/// The file in git.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Baseline {
    /// What made the figures, apart from the sources.
    tools: BTreeMap<String, String>,
    /// Instructions of one iteration of each benchmark.
    benchmarks: BTreeMap<String, f64>,
    /// Instructions of each phase of fork, exec of /bin/true and exit.
    phases: BTreeMap<String, f64>,
}

/// What a comparison brought.
#[derive(Debug, PartialEq)]
struct Verdict {
    failures: Vec<String>,
    notes: Vec<String>,
}

/// Measures and compares with the file; an error says what grew, and in which phase.
pub fn check() -> Result<()> {
    let text = fs::read_to_string(file()).with_context(|| paths::shown(&file()))?;
    let baseline: Baseline = serde_json::from_str(&text).with_context(|| paths::shown(&file()))?;
    let mut verdict = baseline.compare(&measure(BOOTS)?);
    if !verdict.failures.is_empty() {
        println!("{}\nmeasured again, with {BOOTS_TO_CONFIRM} boots:", verdict.failures.join("\n"));
        verdict = baseline.compare(&measure(BOOTS_TO_CONFIRM)?);
    }
    for note in &verdict.notes {
        println!("{note}");
    }
    if verdict.failures.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\nif this growth is wanted: cargo xtask bench --write-baseline, and say why in the commit",
        verdict.failures.join("\n")
    )
}

/// Measures and writes the file.
pub fn write() -> Result<()> {
    let baseline = measure(BOOTS_TO_CONFIRM)?;
    fs::create_dir_all(file().parent().context("the baseline has a folder")?)?;
    fs::write(file(), serde_json::to_string_pretty(&baseline)? + "\n")?;
    println!("wrote {}", paths::shown(&file()));
    Ok(())
}

fn file() -> PathBuf {
    paths::source("tests/bench/baseline.json")
}

/// Boots the kernel as it is now; builds it first.
fn measure(boots: u32) -> Result<Baseline> {
    build::build(build::Options::default())?;
    let args = MachineArgs { icount: true, ..MachineArgs::default() };
    let machine = args.machine()?;
    let figures =
        Bench::instructions_of(Kernel::Alea, &GUARDED.join(","), boots, &args).measure(&machine)?;
    let figures = &figures[Kernel::Alea as usize];
    if !figures.failures.is_empty() {
        bail!("a benchmark failed: {}", figures.failures.join("; "));
    }
    let mut benchmarks = BTreeMap::new();
    for name in GUARDED {
        let median = figures.samples.get(name).and_then(|samples| samples.median());
        benchmarks.insert(name.to_owned(), rounded(median.with_context(|| format!("no {name}"))?));
    }
    let phases = Profile::instructions(&args).phases(&machine)?;
    let phases = phases.into_iter().map(|Phase { name, avg_ns, .. }| (name, avg_ns)).collect();
    Ok(Baseline { tools: tools()?, benchmarks, phases })
}

/// The versions of all that shapes the counts but does not stand in this repository.
fn tools() -> Result<BTreeMap<String, String>> {
    let first_line = |program: &str| -> Result<String> {
        let text = process::output(Command::new(program).arg("--version"))?;
        Ok(text.lines().next().unwrap_or("").to_owned())
    };
    let busybox = process::output(Command::new(paths::busybox()).arg("--help"))?;
    Ok(BTreeMap::from([
        ("rustc".into(), first_line("rustc")?),
        ("gcc".into(), first_line("gcc")?),
        ("qemu".into(), qemu::version()?.to_string()),
        ("busybox".into(), busybox.lines().next().unwrap_or("").to_owned()),
    ]))
}

/// Two digits after the point are more than repeats.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl Baseline {
    fn compare(&self, now: &Self) -> Verdict {
        let mut verdict = Verdict { failures: Vec::new(), notes: Vec::new() };
        let mut limit = LIMIT;
        for (tool, version) in &now.tools {
            let known = self.tools.get(tool).map_or("none", String::as_str);
            if known != version {
                limit = LIMIT_OTHER_TOOLS;
                verdict.notes.push(format!(
                    "the baseline was made with {tool} `{known}`, this is `{version}`: up to {:.0} % \
                     is let pass; cargo xtask bench --write-baseline makes the guard strict again",
                    limit * 100.0
                ));
            }
        }
        for name in GUARDED {
            let (Some(before), Some(after)) = (self.benchmarks.get(name), now.benchmarks.get(name))
            else {
                verdict.failures.push(format!("{name} is not in the baseline"));
                continue;
            };
            let growth = after / before - 1.0;
            let text =
                format!("{name}: {before} -> {after} instructions ({:+.1} %)", growth * 100.0);
            if growth > limit {
                verdict.failures.push(format!("{text}, more than {:.0} %", limit * 100.0));
            } else if growth < -LIMIT {
                verdict.notes.push(format!("{text}: worth a new baseline, so that it stays"));
            } else {
                verdict.notes.push(text);
            }
        }
        let phases = self.grown_phases(now);
        let is_guarded = |(name, _): &(&str, String)| *name == GUARDED_PHASE;
        if !verdict.failures.is_empty() || phases.iter().any(is_guarded) {
            let none = || vec!["  no phase of fork, exec, exit or wait grew".into()];
            let texts: Vec<String> = phases.into_iter().map(|(_, text)| text).collect();
            verdict.failures.extend(if texts.is_empty() { none() } else { texts });
        }
        verdict
    }

    /// The phases that grew, worst first, and how much.
    fn grown_phases<'a>(&self, now: &'a Self) -> Vec<(&'a str, String)> {
        let mut grown: Vec<(f64, &str, String)> = now
            .phases
            .iter()
            .filter_map(|(name, after)| {
                let before = self.phases.get(name).copied().unwrap_or(0.0);
                let text = format!("  phase {name}: {before:.0} -> {after:.0} instructions");
                (after - before > PHASE_NOISE).then_some((after - before, &**name, text))
            })
            .collect();
        grown.sort_by(|a, b| b.0.total_cmp(&a.0));
        grown.into_iter().map(|(_, name, text)| (name, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(exec: f64, stack: f64, rustc: &str) -> Baseline {
        let figure = |name: &str| if name == "exec_true" { exec } else { 100.0 };
        Baseline {
            tools: BTreeMap::from([("rustc".into(), rustc.into())]),
            benchmarks: GUARDED.iter().map(|name| ((*name).into(), figure(name))).collect(),
            phases: BTreeMap::from([("stack".into(), stack), ("random".into(), 500.0)]),
        }
    }

    #[test]
    fn growth_beyond_the_limit_fails_and_names_the_phase() {
        let before = baseline(80_000.0, 9_000.0, "1.95");
        assert_eq!(before.compare(&baseline(82_000.0, 11_000.0, "1.95")).failures.len(), 0);
        let failures = before.compare(&baseline(83_000.0, 12_000.0, "1.95")).failures;
        assert_eq!(failures.len(), 2);
        assert!(failures[0].starts_with("exec_true: 80000 -> 83000 instructions (+3.8 %)"));
        assert_eq!(failures[1], "  phase stack: 9000 -> 12000 instructions");
    }

    #[test]
    fn growth_of_what_at_random_costs_fails_by_itself() {
        let before = baseline(80_000.0, 9_000.0, "1.95");
        let mut now = baseline(80_000.0, 9_000.0, "1.95");
        now.phases.insert("random".into(), 540.0);
        assert_eq!(before.compare(&now).failures.len(), 0);
        now.phases.insert("random".into(), 724.0);
        let failures = before.compare(&now).failures;
        assert_eq!(failures, ["  phase random: 500 -> 724 instructions"]);
    }

    #[test]
    fn other_tools_widen_the_limit_and_are_named() {
        let before = baseline(80_000.0, 9_000.0, "1.95");
        let verdict = before.compare(&baseline(85_000.0, 9_000.0, "1.96"));
        assert_eq!(verdict.failures.len(), 0);
        assert!(verdict.notes[0].contains("1.96"), "{:?}", verdict.notes);
        assert_eq!(before.compare(&baseline(90_000.0, 9_000.0, "1.96")).failures.len(), 2);
    }

    #[test]
    fn a_gain_is_worth_a_note() {
        let before = baseline(80_000.0, 9_000.0, "1.95");
        let verdict = before.compare(&baseline(70_000.0, 8_000.0, "1.95"));
        assert_eq!((verdict.failures.len(), verdict.notes.len()), (0, GUARDED.len()));
    }

    #[test]
    fn the_file_in_git_is_whole() {
        let baseline: Baseline =
            serde_json::from_str(&fs::read_to_string(file()).unwrap()).unwrap();
        for name in GUARDED {
            assert!(baseline.benchmarks[name] > 0.0, "{name}");
        }
        assert!(
            baseline.phases.contains_key("elf_load") && baseline.phases.contains_key(GUARDED_PHASE)
        );
    }
}
