//! `cargo xtask abi`: runs the programs of `tests/abi` in a guest and compares what they print.
//!
//! Linux is right by definition. What it printed is kept in `expected/NAME.txt` beside `NAME.c`, so that a
//! test run need not boot it; `--refresh` writes those files anew, `--live` does without them.
//! Known differences are data, in `tests/abi/xfail.toml`, each with a reason; one that has gone away
//! is a failure too, so that the list can only shrink.

mod known;
mod output;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use similar::get_close_matches;

pub use known::Known;
use output::{LEFT, sections};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::inject::{FailAlloc, Rate, Told};
use xtask_guest::qemu::{self, Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::{paths, process, term};
use xtask_run::options::memory_for;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::results::{Case, Verdict};
use xtask_shards::share::ShardArgs;
use xtask_shards::stopwatch::Stopwatch;
use xtask_tidy::injected::{self, Injected};

/// Longer than the guest's own limit for one program.
const SILENCE: Duration = Duration::from_secs(240);

/// Least memory of a machine that runs them: while a root is filled from their archive, it takes twice the archive's size.
pub const MEMORY: &str = "640M";

/// So many programs are shared by as many guests: most of them wait for time to pass.
const MANY: usize = 100;
const GUESTS: usize = 2;

/// Names on the kernel command line; of a longer list each piece gets a boot of its own.
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
    #[arg(long, conflicts_with_all = ["live", "shard", "results"])]
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
    shards: ShardArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

/// What programs did in guests.
#[derive(Default)]
struct Ran {
    /// What each printed, ending in how it ended.
    output: BTreeMap<String, String>,
    /// What was injected.
    told: Told,
    /// How long each took, by the host's clock.
    seconds: BTreeMap<String, f64>,
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

    /// The command that runs those of `names`, with the same options.
    fn line(&self, names: &[String]) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "abi".into()];
        words.extend_from_slice(names);
        words.extend(self.live.then(|| "--live".into()));
        if self.again > 0 {
            words.extend(["--again".into(), self.again.to_string()]);
        }
        words.extend(self.fail_alloc.words());
        words.extend(self.machine.words());
        words.extend(self.build.words());
        process::line(words)
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
        let share = self.shards.share(&self.line(&self.names), &names)?;
        let cases = match self.fail_alloc.rate.filter(|rate| !rate.is_named_only()) {
            Some(rate) => self.failing(&machine, &share.units, rate)?,
            None => self.compared(&machine, &share.units)?,
        };
        let failed = cases.iter().filter(|case| case.verdict == Verdict::Failed).count();
        println!("{} passed, {failed} failed", share.units.len() - failed);
        share.finish(cases)
    }

    /// Runs programs and compares them with Linux.
    fn compared(&self, machine: &Machine, names: &[String]) -> Result<Vec<Case>> {
        let mut linux = BTreeMap::new();
        if self.live {
            setup::ensure(&[Need::Linux])?;
            linux = run_linux(&self.roomy(machine)?, names)?;
        }
        let words = match (self.fail_alloc.rate, self.again) {
            (Some(rate), _) => rate.word(),
            (None, 0) => String::new(),
            (None, again) => format!("alea.abi_again={again}"),
        };
        let alea = run_with(machine, &paths::kernel(), names, &words)?;
        let known = Known::load()?;
        let mut cases = Vec::new();
        for name in names {
            let want = match linux.remove(name) {
                Some(text) => text,
                None => expected(name)?,
            };
            let got = alea.output.get(name).map_or("", String::as_str);
            if self.output {
                println!("=== {name}\n{got}");
            }
            let (verdict, message) = match known.judge(name, got, &want) {
                Ok(0) => (Verdict::Passed, String::new()),
                Ok(lines) => (Verdict::Known, format!("{lines} known differences")),
                Err(why) => (Verdict::Failed, why),
            };
            match verdict {
                Verdict::Known => println!("xfail   {name} ({message})"),
                Verdict::Failed => println!("FAILED  {name}\n{message}"),
                _ => println!("ok      {name}"),
            }
            cases.push(self.case(name, verdict, &message, &alea));
        }
        if self.fail_alloc.rate.is_some() {
            println!("{}", alea.told);
        }
        Ok(cases)
    }

    /// Runs programs while allocations fail; nothing is compared.
    fn failing(&self, machine: &Machine, names: &[String], rate: Rate) -> Result<Vec<Case>> {
        let (found, ran) = failures(machine, &paths::kernel(), names, rate)?;
        for (name, what) in &found {
            let whole = self.output;
            let shown = if whole { what.as_str() } else { what.lines().next().unwrap_or_default() };
            println!("FAILED  {name}\n{shown}");
        }
        println!("{}", ran.told);
        if self.fail_alloc.write_figures {
            write_injected(&ran.told, found.len())?;
        }
        let case = |name: &String| match found.iter().find(|(bad, _)| bad == name) {
            Some((_, what)) => self.case(name, Verdict::Failed, what, &ran),
            None => self.case(name, Verdict::Passed, "", &ran),
        };
        Ok(names.iter().map(case).collect())
    }

    fn case(&self, name: &str, verdict: Verdict, message: &str, ran: &Ran) -> Case {
        let seconds = ran.seconds.get(name).copied().unwrap_or_default();
        Case::of(name, verdict, seconds, message, &self.line(&[name.to_owned()]))
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
    let (found, ran) = failures(machine, kernel, names, rate)?;
    Ok((found, ran.told))
}

fn failures(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
    rate: Rate,
) -> Result<(Vec<(String, String)>, Ran)> {
    let words = format!("{} alea.abi_seconds={FAILING_SECONDS}", rate.word());
    let ran = run_with(machine, kernel, names, &words)?;
    let bad = [LEFT, BROKEN, "--- kernel panic", "--- hang", "--- the guest"];
    let mut found = Vec::new();
    for name in names {
        let got = ran.output.get(name).map_or("--- the guest did not run it\n", String::as_str);
        if let Some(at) = bad.iter().filter_map(|bad| got.find(bad)).min() {
            found.push((name.clone(), got[at..].to_owned()));
        }
    }
    Ok((found, ran))
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
    let ran = run_with(machine, kernel, names, &rate.word())?;
    let failed = |(name, verdict): (String, Result<(), String>)| Some((name, verdict.err()?));
    Ok((judged(names, &ran.output)?.into_iter().filter_map(failed).collect(), ran.told))
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
/// kernel down is charged with that, and the kernel is booted again for those after it. Many are shared by several guests.
pub fn run_on(
    machine: &Machine,
    kernel: &Path,
    names: &[String],
) -> Result<BTreeMap<String, String>> {
    let guests = if names.len() < MANY { 1 } else { GUESTS };
    let share = |guest| names.iter().skip(guest).step_by(guests).cloned().collect::<Vec<_>>();
    let run = |names: Vec<String>| run_with(machine, kernel, &names, "");
    thread::scope(|scope| {
        let started: Vec<_> =
            (0..guests).map(|guest| scope.spawn(move || run(share(guest)))).collect();
        let mut output = BTreeMap::new();
        for guest in started {
            let ran = guest.join().map_err(|_| anyhow!("what runs a guest has panicked"))?;
            output.extend(ran?.output);
        }
        Ok(output)
    })
}

/// The same on Linux. Large pages are off, as in a machine of the usual memory, in which it would not use any.
fn run_linux(machine: &Machine, names: &[String]) -> Result<BTreeMap<String, String>> {
    Ok(run_with(machine, &paths::vmlinuz(), names, "transparent_hugepage=never")?.output)
}

/// As above, with more words on the kernel's command line.
fn run_with(machine: &Machine, kernel: &Path, names: &[String], words: &str) -> Result<Ran> {
    let mut ran = Ran::default();
    let lists = if names == programs()? { vec!["*".to_owned()] } else { lists(names) };
    let spinner = term::spinner(&format!("ABI programs on {}", paths::shown(kernel)));
    let stopwatch = Stopwatch::new("=== ");
    for list in lists {
        run_list(machine, kernel, &format!("alea.abi={list} {words}"), &stopwatch, &mut ran)?;
    }
    spinner.finish_and_clear();
    ran.output.retain(|name, _| names.contains(name));
    ran.seconds = stopwatch.seconds();
    Ok(ran)
}

/// Names in lists that a kernel command line has room for.
fn lists(names: &[String]) -> Vec<String> {
    let mut lists: Vec<String> = Vec::new();
    for name in names {
        match lists.last_mut() {
            Some(list) if list.len() + 1 + name.len() <= LONGEST_LIST => {
                list.push(',');
                list.push_str(name);
            }
            _ => lists.push(name.clone()),
        }
    }
    lists
}

/// Runs the programs of one list; in a new guest those after one that has taken the kernel down.
fn run_list(
    machine: &Machine,
    kernel: &Path,
    words: &str,
    stopwatch: &Stopwatch,
    ran: &mut Ran,
) -> Result<()> {
    let mut after = String::new();
    loop {
        let line = format!(
            "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check rdinit=/usr/lib/alea/abi-run \
             alea.abi_after={after} {words}"
        );
        let machine = machine.clone().direct(kernel, Some(paths::tests_initramfs()), &line);
        let machine = if machine.memory == qemu::MEMORY { machine.memory(MEMORY) } else { machine };
        let guest = Guest::start_echoing(&machine, stopwatch.clone())?;
        let outcome = guest.finish(Limits::idle(SILENCE))?;
        stopwatch.stop();
        ran.told.add(&outcome.output);
        let (sections, whole) = sections(&outcome.output);
        let last = sections.last().map(|(name, _)| name.clone());
        ran.output.extend(sections);
        if whole && outcome.end == End::Exited(0) {
            return Ok(());
        }
        let Some(name) = last.filter(|name| *name > after) else {
            bail!("{}\n{}", outcome.describe(), outcome.stuck_at(kernel));
        };
        let section = ran.output.entry(name.clone()).or_default();
        if whole {
            section.push_str("--- the guest did not power off\n");
            return Ok(());
        }
        section.push_str(&format!("--- {}\n", short(&outcome.end)));
        if let Some(report) = symbolize::panic_report(kernel, &outcome.output) {
            section.push_str(&report);
        }
        section.push_str(&outcome.stuck_at(kernel));
        after = name;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn long_lists_are_cut_where_the_command_line_ends() {
        let names: Vec<String> = (0..300).map(|number| format!("program_{number}")).collect();
        let lists = lists(&names);
        assert!(lists.len() > 1 && lists.iter().all(|list| list.len() <= LONGEST_LIST));
        assert_eq!(lists.join(","), names.join(","));
        assert!(super::lists(&[]).is_empty());
    }
}
