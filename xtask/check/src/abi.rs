//! `cargo xtask abi`: runs the programs of `tests/abi` in a guest and compares what they print.
//!
//! Linux is right by definition. What it printed is kept in `expected/NAME.txt` beside `NAME.c`, so that a
//! test run need not boot it; `--refresh` writes those files anew, `--live` does without them.
//! Known differences are data, in `tests/abi/xfail.toml`, each with a reason; one that has gone away
//! is a failure too, so that the list can only shrink.

mod output;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use similar::{ChangeTag, get_close_matches};

use output::{LEFT, hunks, sections};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::inject::{FailAlloc, Rate, Told};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::{paths, term};
use xtask_run::options::memory_for;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::injected::{self, Injected};

/// Longer than the guest's own limit for one program.
const SILENCE: Duration = Duration::from_secs(240);

/// Names on the kernel command line; a longer list is replaced by `*`.
const LONGEST_LIST: usize = 1000;

/// Runs ABI programs and compares what they print with Linux.
#[derive(Args)]
pub struct Abi {
    /// Names of programs, or parts of names; default: all
    names: Vec<String>,
    /// Compare with Linux as it prints now, not with what is kept
    #[arg(long)]
    live: bool,
    /// Run on Linux only, and write what it prints beside the programs
    #[arg(long, conflicts_with = "live")]
    refresh: bool,
    /// Print the programs' whole output
    #[arg(long)]
    output: bool,
    /// Run each program so often more, and want the same of every run
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["live", "refresh", "rate"])]
    again: u32,
    #[command(flatten)]
    fail_alloc: FailAlloc,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Abi {
    /// The machine with room for Linux, unless its memory was chosen: Linux keeps the archive while its root, which takes half of
    /// the memory at most, is filled from it.
    fn roomy(&self, machine: &Machine) -> Result<Machine> {
        if self.machine.memory.is_some() {
            return Ok(machine.clone());
        }
        Ok(machine.clone().memory(&memory_for(&paths::tests_initramfs())?))
    }

    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        let names = named(programs()?, &self.names)?;
        let machine = self.machine.machine()?;
        if self.refresh {
            build::initramfs()?;
            return refresh(&self.roomy(&machine)?, &names);
        }
        build::build(self.build)?;
        let rate = self.fail_alloc.rate;
        if let Some(rate) = rate.filter(|rate| !rate.is_named_only()) {
            return failing(&machine, &names, rate, (self.output, self.fail_alloc.write_figures));
        }
        let mut linux = BTreeMap::new();
        if self.live {
            setup::ensure(&[Need::Linux])?;
            linux = run_linux(&self.roomy(&machine)?, &names)?;
        }
        let words = match (rate, self.again) {
            (Some(rate), _) => rate.word(),
            (None, 0) => String::new(),
            (None, again) => format!("alea.abi_again={again}"),
        };
        let (alea, told) = run_with(&machine, &paths::kernel(), &names, &words)?;
        let known = Known::load()?;
        let mut failed = 0;
        for name in &names {
            let want = match linux.remove(name) {
                Some(text) => text,
                None => expected(name)?,
            };
            let got = alea.get(name).map_or("", String::as_str);
            if self.output {
                println!("=== {name}\n{got}");
            }
            match known.judge(name, got, &want) {
                Ok(0) => println!("ok      {name}"),
                Ok(lines) => println!("xfail   {name} ({lines} known differences)"),
                Err(why) => {
                    println!("FAILED  {name}\n{why}");
                    failed += 1;
                }
            }
        }
        if rate.is_some() {
            println!("{told}");
        }
        println!("{} passed, {failed} failed", names.len() - failed);
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The programs that have one of `parts` in their names, all for none; each part must stand in a name.
fn named(all: Vec<String>, parts: &[String]) -> Result<Vec<String>> {
    for part in parts {
        if !all.iter().any(|name| name.contains(part.as_str())) {
            let names: Vec<&str> = all.iter().map(String::as_str).collect();
            let near = get_close_matches(part.as_str(), &names, 3, 0.6);
            let near = match near.is_empty() {
                true => String::new(),
                false => format!("; near it: {}", near.join(", ")),
            };
            bail!("no ABI program has {part:?} in its name{near}");
        }
    }
    let wanted =
        |name: &String| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()));
    Ok(all.into_iter().filter(wanted).collect())
}

/// How a line begins in which a program says that something failed and yet changed something (`tests/abi/vfs/undone.c`).
const BROKEN: &str = "--- broken: ";

/// Seconds for a program when allocations fail: one that waits for what did not come is no hang of the kernel.
const FAILING_SECONDS: u32 = 5;

/// Runs programs while allocations fail: what each left behind or did to the kernel, and what was injected.
pub fn run_failing(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
    rate: Rate,
) -> Result<(Vec<(String, String)>, Told)> {
    let words = format!("{} alea.abi_seconds={FAILING_SECONDS}", rate.word());
    let (ran, told) = run_with(machine, kernel, names, &words)?;
    let bad = [LEFT, BROKEN, "--- kernel panic", "--- hang", "--- the guest"];
    let mut found = Vec::new();
    for name in names {
        let got = ran.get(name).map_or("--- the guest did not run it\n", String::as_str);
        if let Some(at) = bad.iter().filter_map(|bad| got.find(bad)).min() {
            found.push((name.clone(), got[at..].to_owned()));
        }
    }
    Ok((found, told))
}

fn failing(
    machine: &Machine,
    names: &[String],
    rate: Rate,
    (whole, write): (bool, bool),
) -> Result<ExitCode> {
    let (found, told) = run_failing(machine, &paths::kernel(), names, rate)?;
    for (name, what) in &found {
        let shown = if whole { what.as_str() } else { what.lines().next().unwrap_or_default() };
        println!("FAILED  {name}\n{shown}");
    }
    println!("{told}");
    if write {
        write_injected(&told, found.len())?;
    }
    println!("{} passed, {} failed", names.len() - found.len(), found.len());
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes what was made to fail, and how much of what ran showed a fault, into the table of docs/testing.md.
pub fn write_injected(told: &Told, found: usize) -> Result<()> {
    let Told { asked, failed, frames } = *told;
    injected::write(&Injected { asked, failed, frames, found: found as u64 })
}

/// Runs programs that name the allocations which fail (`alea/fail_nth`): what each said that Linux did not, and what was injected.
pub fn run_naming(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
) -> Result<(Vec<(String, String)>, Told)> {
    let rate = Rate { every: 0, seed: 1, generation: None };
    let (ran, told) = run_with(machine, kernel, names, &rate.word())?;
    let failed = |(name, verdict): (String, Result<(), String>)| Some((name, verdict.err()?));
    Ok((judged(names, &ran)?.into_iter().filter_map(failed).collect(), told))
}

/// Runs all programs on one of our kernels, and compares with what Linux printed.
pub fn verdicts(machine: &Machine, kernel: &Path) -> Result<Vec<(String, Result<(), String>)>> {
    let names = programs()?;
    judged(&names, &run_on(machine, kernel, &names)?)
}

/// Compares what programs printed with what they printed on Linux.
fn judged(
    names: &[String],
    ran: &BTreeMap<String, String>,
) -> Result<Vec<(String, Result<(), String>)>> {
    let known = Known::load()?;
    let verdict = |name: &String| {
        let got = ran.get(name).map_or("--- did not run\n", String::as_str);
        let want = expected(name).map_err(|error| format!("{error:#}"));
        (name.clone(), want.and_then(|want| known.judge(name, got, &want)).map(drop))
    };
    Ok(names.iter().map(verdict).collect())
}

/// The names of all programs, sorted.
pub fn programs() -> Result<Vec<String>> {
    Ok(sources()?.into_keys().collect())
}

/// The source of every program, by name. Names are unique whatever folder of `tests/abi` a program lies in.
fn sources() -> Result<BTreeMap<String, PathBuf>> {
    let mut sources = BTreeMap::new();
    for file in build::files_below(&paths::source("tests/abi"), "c")? {
        let name = file.file_stem().and_then(|stem| stem.to_str()).context("an odd file name")?;
        if let Some(other) = sources.insert(name.to_owned(), file.clone()) {
            bail!("two programs of one name: {}, {}", paths::shown(&other), paths::shown(&file));
        }
    }
    Ok(sources)
}

/// Where a program's expected output lies: in `expected` beside it.
fn expected_file(name: &str) -> Result<PathBuf> {
    let source = sources()?.remove(name).with_context(|| format!("no program {name}"))?;
    let folder = source.parent().context("a file without a folder")?.join("expected");
    Ok(folder.join(format!("{name}.txt")))
}

/// What Linux printed.
pub fn expected(name: &str) -> Result<String> {
    let file = expected_file(name)?;
    fs::read_to_string(&file).with_context(|| {
        format!("{}: `cargo xtask abi --refresh {name}` makes it", paths::shown(&file))
    })
}

/// Runs programs on a kernel; gives each one's output, ending in how it ended. One that takes the
/// kernel down is charged with that, and the kernel is booted again for those after it.
pub fn run_on(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
) -> Result<BTreeMap<String, String>> {
    Ok(run_with(machine, kernel, names, "")?.0)
}

/// The same on Linux. Large pages are off, as in a machine of the usual memory, in which it would not use any.
fn run_linux(machine: &Machine, names: &[String]) -> Result<BTreeMap<String, String>> {
    Ok(run_with(machine, &paths::vmlinuz(), names, "transparent_hugepage=never")?.0)
}

/// As above, with more words on the kernel's command line; and what was injected.
fn run_with(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
    words: &str,
) -> Result<(BTreeMap<String, String>, Told)> {
    let (mut ran, mut told) = (BTreeMap::new(), Told::default());
    let mut after = String::new();
    let list = names.join(",");
    let list = if list.len() > LONGEST_LIST { "*" } else { &list };
    let spinner = term::spinner(&format!("ABI programs on {}", paths::shown(kernel)));
    loop {
        let line = format!(
            "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check rdinit=/usr/lib/alea/abi-run \
             alea.abi={list} alea.abi_after={after} {words}"
        );
        let machine = machine.clone().direct(kernel, Some(paths::tests_initramfs()), &line);
        let outcome = Guest::start(&machine)?.finish(Limits::idle(SILENCE))?;
        told.add(&outcome.output);
        let (sections, whole) = sections(&outcome.output);
        let last = sections.last().map(|(name, _)| name.clone());
        ran.extend(sections);
        if whole && outcome.end == End::Exited(0) {
            break;
        }
        let Some(name) = last.filter(|name| *name > after) else {
            bail!("{}\n{}", outcome.describe(), outcome.stuck_at(kernel));
        };
        let section = ran.entry(name.clone()).or_default();
        if whole {
            section.push_str("--- the guest did not power off\n");
            break;
        }
        section.push_str(&format!("--- {}\n", short(&outcome.end)));
        if let Some(report) = symbolize::panic_report(kernel, &outcome.output) {
            section.push_str(&report);
        }
        section.push_str(&outcome.stuck_at(kernel));
        after = name;
    }
    spinner.finish_and_clear();
    ran.retain(|name, _| names.contains(name));
    Ok((ran, told))
}

fn short(end: &End) -> &'static str {
    match end {
        End::Panicked => "kernel panic",
        End::TimedOut => "hang",
        End::Exited(_) | End::Signalled(_) => "the guest ended",
    }
}

fn refresh(machine: &Machine, names: &[String]) -> Result<ExitCode> {
    setup::ensure(&[Need::Linux])?;
    for (name, text) in run_linux(machine, names)? {
        if !text.ends_with("--- exit 0\n") {
            bail!("{name} does not work on Linux:\n{text}");
        }
        let file = expected_file(&name)?;
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        println!("wrote {}", paths::shown(&file));
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&file, text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The differences that are known, by program.
#[derive(Default, Deserialize)]
pub struct Known {
    #[serde(flatten)]
    programs: BTreeMap<String, Vec<Difference>>,
}

/// Lines of Linux's output that Alea does not print (or prints otherwise), and why. No lines at all
/// stand for the whole program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    reason: String,
    #[serde(default)]
    lines: Vec<String>,
}

impl Known {
    /// Reads `tests/abi/xfail.toml`.
    pub fn load() -> Result<Self> {
        let file = paths::source("tests/abi/xfail.toml");
        let text = fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
        let known: Self = toml::from_str(&text).with_context(|| paths::shown(&file))?;
        let reasonless = |one: &Difference| one.reason.trim().is_empty();
        if let Some((name, _)) = known.programs.iter().find(|(_, list)| list.iter().any(reasonless))
        {
            bail!("{}: {name} has an entry without a reason", paths::shown(&file));
        }
        Ok(known)
    }

    /// The programs that have known differences.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    /// The number of known differences; an error shows those that are not known, or no longer there.
    pub fn judge(&self, name: &str, got: &str, want: &str) -> std::result::Result<usize, String> {
        let list = self.programs.get(name).map_or(&[][..], Vec::as_slice);
        if let Some(whole) = list.iter().find(|one| one.lines.is_empty()) {
            return if got == want {
                Err(format!("  now passes; remove it from xfail.toml ({})", whole.reason))
            } else {
                Ok(1)
            };
        }
        let mut known: Vec<&str> =
            list.iter().flat_map(|one| &one.lines).map(|line| line.as_str().trim_end()).collect();
        let total = known.len();
        let mut report = String::new();
        for hunk in hunks(want, got) {
            let before = known.len();
            let unknown = hunk.iter().any(|(tag, line)| {
                let place = known.iter().position(|known| known == line);
                match (tag, place) {
                    (ChangeTag::Delete, Some(place)) => {
                        known.remove(place);
                        false
                    }
                    (ChangeTag::Delete, None) => true,
                    _ => false,
                }
            });
            // Lines that only Alea prints are excused by a known line beside them.
            if unknown || known.len() == before {
                for (tag, line) in hunk {
                    let sign = if tag == ChangeTag::Delete { "linux" } else { "alea " };
                    report.push_str(&format!("  {sign} | {line}\n"));
                }
            }
        }
        for line in &known {
            report.push_str(&format!("  now as on Linux, remove it from xfail.toml: {line}\n"));
        }
        if report.is_empty() { Ok(total) } else { Err(report) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Known {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_name_that_matches_nothing_is_an_error() {
        let all = || ["pipe_basic", "pipe_fifo", "poll"].map(String::from).to_vec();
        let parts = |words: &[&str]| words.iter().map(|word| (*word).into()).collect::<Vec<_>>();
        assert_eq!(named(all(), &[]).unwrap().len(), 3);
        assert_eq!(named(all(), &parts(&["pipe", "basic"])).unwrap(), ["pipe_basic", "pipe_fifo"]);
        let error = named(all(), &parts(&["poll", "pipe_basik"])).unwrap_err().to_string();
        assert!(
            error.contains("\"pipe_basik\"") && error.contains("near it: pipe_basic"),
            "{error}"
        );
        assert!(named(all(), &parts(&["zzz"])).is_err());
    }

    #[test]
    fn differences_must_be_known_and_known_ones_must_differ() {
        let none = known("");
        assert_eq!(none.judge("p", "a\nb\n", "a\nb\n"), Ok(0));
        assert!(none.judge("p", "a\nX\n", "a\nb\n").unwrap_err().contains("linux | b"));
        assert!(none.judge("p", "", "a\n").is_err());
        assert!(none.judge("p", "a\nmore\n", "a\n").unwrap_err().contains("alea  | more"));
        let one = known("[[p]]\nreason = \"why\"\nlines = [\"b\"]\n");
        assert_eq!(one.judge("p", "a\nX\nc\n", "a\nb\nc\n"), Ok(1));
        assert!(one.judge("p", "a\nb\nc\n", "a\nb\nc\n").unwrap_err().contains("now as on Linux"));
        assert!(one.judge("p", "a\nX\nY\n", "a\nb\nc\n").is_err(), "c is not known");
        assert!(one.judge("q", "a\nX\n", "a\nb\n").is_err(), "another program");
        let whole = known("[[p]]\nreason = \"why\"\n");
        assert_eq!(whole.judge("p", "x\n", "a\n"), Ok(1));
        assert!(whole.judge("p", "a\n", "a\n").unwrap_err().contains("now passes"));
    }
}
