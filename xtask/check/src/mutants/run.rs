//! Runs cargo-mutants in copies of the crate, one for each job, and makes the changes of our own there.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::data::{Change, Data};
use super::tree::{self, Tree};
use super::verdict::{Outcomes, split};
use xtask_host::process;
use xtask_setup::tools;
use xtask_shards::shard::Shard;

/// For the tests of one mutant, in seconds, on a busy machine; a loop without an end takes this long.
const TEST_LIMIT: u32 = 60;
/// For its build.
const BUILD_LIMIT: u32 = 300;
/// What timeout(1) answers when time is over.
const TIMED_OUT: i32 = 124;

/// Which mutants are tested.
pub enum Selection {
    All,
    /// Every so many.
    Part(Shard),
    /// Those in lines of this diff.
    Diff(String),
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all mutants"),
            Self::Part(shard) => write!(f, "part {shard} of the mutants"),
            Self::Diff(_) => f.write_str("mutants of what has changed"),
        }
    }
}

/// The names of all mutants that there are.
pub fn list(data: &Data) -> Result<Vec<String>> {
    let tree = Tree::new(0)?;
    let mut mutants = base(&tree, data);
    let listed = process::output(mutants.arg("--list"))?;
    let is_code = |name: &&str| {
        split(name).is_some_and(|(file, _)| !file.contains("/tests") && !file.starts_with("tests"))
    };
    Ok(listed.lines().filter(is_code).map(str::to_owned).collect())
}

enum Work {
    File(String),
    Change(Change),
}

/// Tests the mutants of `selection` in files of these names, or in all.
pub fn all(data: &Data, selection: &Selection, names: &[String], jobs: usize) -> Result<Outcomes> {
    let wanted =
        |file: &str| names.is_empty() || names.iter().any(|name| file.ends_with(name.as_str()));
    let files = tree::sources()?.into_iter().filter(|file| wanted(file) && selection.touches(file));
    let changes = data.change.iter().enumerate().filter(|(at, change)| {
        wanted(&change.file) && selection.touches(&change.file) && selection.has(*at)
    });
    let mut queue: VecDeque<Work> = files.map(Work::File).collect();
    queue.extend(changes.map(|(_, change)| Work::Change(change.clone())));
    let (queue, done) = (Mutex::new(queue), Mutex::new(Outcomes::default()));
    let job = |number: usize| -> Result<()> {
        let tree = Tree::new(number)?;
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
            let Some(work) = next else { return Ok(()) };
            let outcomes = match &work {
                Work::File(file) => generated(&tree, data, file, selection)?,
                Work::Change(change) => own(&tree, data, change)?,
            };
            if let Ok(mut done) = done.lock() {
                done.add(outcomes);
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..jobs.max(1)).map(|n| scope.spawn(move || job(n))).collect();
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|_| bail!("a job panicked")))
    })?;
    done.into_inner().ok().context("a job panicked")
}

impl Selection {
    /// Whether a mutant of `file` may be among them.
    fn touches(&self, file: &str) -> bool {
        match self {
            Self::All | Self::Part(_) => true,
            Self::Diff(diff) => diff.contains(&format!("kernel/random/src/{file}\n")),
        }
    }

    /// Whether the change of that number is among them.
    fn has(&self, number: usize) -> bool {
        match self {
            Self::All | Self::Diff(_) => true,
            Self::Part(shard) => Shard::at(number as u64, shard.count()) == *shard,
        }
    }
}

/// What cargo-mutants makes of `file`: its own tests first, then all of them on the survivors.
fn generated(tree: &Tree, data: &Data, file: &str, selection: &Selection) -> Result<Outcomes> {
    let mut outcomes = cargo_mutants(tree, data, file, &first(data, file)?, selection, &[])?;
    let survivors = std::mem::take(&mut outcomes.missed);
    if !survivors.is_empty() {
        outcomes.add(cargo_mutants(
            tree,
            data,
            file,
            &tree::tests()?,
            &Selection::All,
            &survivors,
        )?);
    }
    Ok(outcomes)
}

fn first(data: &Data, file: &str) -> Result<Vec<String>> {
    let all = tree::tests()?;
    Ok(data.first(file).into_iter().filter(|test| all.contains(test)).collect())
}

fn base(tree: &Tree, data: &Data) -> Command {
    let mut mutants = Command::new(tools::MUTANTS.program());
    mutants.args(["mutants", "--dir"]).arg(tree.root());
    for exclude in &data.exclude {
        mutants.args(["--exclude-re", &exclude.names]);
    }
    mutants
}

/// Runs cargo-mutants on `file`, on these mutants alone if there are any.
fn cargo_mutants(
    tree: &Tree,
    data: &Data,
    file: &str,
    tests: &[String],
    selection: &Selection,
    only: &[String],
) -> Result<Outcomes> {
    let out = tempfile::tempdir()?;
    let mut mutants = base(tree, data);
    mutants.args(["--in-place", "--no-shuffle", "--colors=never", "--no-times"]);
    mutants.args(["--timeout", &TEST_LIMIT.to_string()]);
    mutants.args(["--build-timeout", &BUILD_LIMIT.to_string()]);
    mutants.arg("--output").arg(out.path());
    mutants.args(["--file", &format!("kernel/random/src/{file}")]);
    match selection {
        Selection::All => {}
        Selection::Part(shard) => {
            // Counted from zero there.
            let part = format!("{}/{}", shard.place(), shard.count());
            mutants.args(["--sharding=round-robin", "--shard", &part]);
        }
        Selection::Diff(diff) => {
            let place = out.path().join("diff");
            std::fs::write(&place, diff)?;
            mutants.arg("--in-diff").arg(place);
        }
    }
    for name in only {
        mutants.args(["--re", &format!("^{}$", escaped(name))]);
    }
    // Of both steps, the build and the run.
    mutants.args(targets(tests).into_iter().flat_map(|target| ["--cargo-arg", target]));
    mutants.env("ALEA_PROOFS", "short");
    let run = mutants.stdin(Stdio::null()).output().context("cannot start cargo-mutants")?;
    let told = String::from_utf8_lossy(&run.stdout);
    // 2: some were missed; 3: some hung.
    if !matches!(run.status.code(), Some(0 | 2 | 3)) {
        bail!(
            "cargo-mutants failed on {file} ({}):\n{told}{}",
            run.status,
            String::from_utf8_lossy(&run.stderr)
        );
    }
    for line in told.lines().filter(|line| line.starts_with("MISSED") && !only.is_empty()) {
        println!("{line}");
    }
    read(&out.path().join("mutants.out"))
}

fn targets(tests: &[String]) -> Vec<&str> {
    let named = tests.iter().flat_map(|test| ["--test", test.as_str()]);
    std::iter::once("--lib").chain(named).collect()
}

/// `name` as a regular expression that finds it alone.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for character in name.chars() {
        if r"\.+*?()|[]{}^$&-~#".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Of cargo-mutants' record what is of use here.
#[derive(Deserialize)]
struct Record {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: serde_json::Value,
    summary: String,
    phase_results: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    phase: String,
}

fn read(folder: &Path) -> Result<Outcomes> {
    let path = folder.join("outcomes.json");
    // Nothing was to be tested.
    if !path.exists() {
        return Ok(Outcomes::default());
    }
    let record: Record = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let mut outcomes = Outcomes::default();
    for outcome in record.outcomes {
        let name = &outcome.scenario["Mutant"]["name"];
        let Some(name) = name.as_str() else { continue };
        let tested = outcome.phase_results.iter().any(|phase| phase.phase == "Test");
        let list = match outcome.summary.as_str() {
            "CaughtMutant" => &mut outcomes.caught,
            "MissedMutant" => &mut outcomes.missed,
            "Unviable" => &mut outcomes.unviable,
            "Timeout" if tested => &mut outcomes.hung,
            "Timeout" => &mut outcomes.undecided,
            summary => bail!("cargo-mutants says `{summary}` of {name}"),
        };
        list.push(name.to_owned());
    }
    Ok(outcomes)
}

/// Makes a change of our own: it has to compile, and a test has to fail.
fn own(tree: &Tree, data: &Data, change: &Change) -> Result<Outcomes> {
    let place = tree.source(&change.file);
    let text = std::fs::read_to_string(&place)?;
    std::fs::write(&place, text.replacen(&change.from, &change.to, 1))?;
    let result = noticed(tree, &first(data, &change.file)?)
        .and_then(|early| if early { Ok(true) } else { noticed(tree, &tree::tests()?) });
    std::fs::write(&place, text)?;
    let what =
        format!("{}: `{}` instead of `{}`", change.file, change.to.trim(), change.from.trim());
    let mut outcomes = Outcomes::default();
    match result {
        Ok(true) => outcomes.caught.push(what),
        Ok(false) => outcomes.unnoticed.push(format!("no test fails: {what}")),
        Err(error) => outcomes.unnoticed.push(format!("{what}: {error:#}")),
    }
    Ok(outcomes)
}

/// Whether a test fails; an error if there is nothing to run.
fn noticed(tree: &Tree, tests: &[String]) -> Result<bool> {
    let cargo = |limit: u32, more: &[&str]| {
        let mut cargo = Command::new("timeout");
        cargo.arg(limit.to_string()).args(["cargo", "test", "--quiet"]).args(targets(tests));
        cargo.args(more).current_dir(tree.root()).env("ALEA_PROOFS", "short");
        cargo
    };
    process::output(&mut cargo(BUILD_LIMIT, &["--no-run"]))?;
    let run =
        cargo(TEST_LIMIT, &[]).stdin(Stdio::null()).output().context("cannot start timeout")?;
    match run.status.code() {
        Some(0) => Ok(false),
        Some(101 | TIMED_OUT) => Ok(true),
        _ => bail!("cargo test ended with {}", run.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_they_are() {
        assert_eq!(escaped("a.rs:1: replace += with *"), r"a\.rs:1: replace \+= with \*");
    }

    #[test]
    fn a_build_without_an_end_decides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().caught.is_empty(), "nothing to be tested");
        let phases = |names: &[&str]| -> String {
            let list: Vec<_> = names.iter().map(|n| format!(r#"{{"phase": "{n}"}}"#)).collect();
            list.join(",")
        };
        let outcome = |name: &str, summary: &str, ran: &[&str]| {
            let phases = phases(ran);
            format!(
                r#"{{"scenario": {{"Mutant": {{"name": "{name}"}}}}, "summary": "{summary}", "phase_results": [{phases}]}}"#
            )
        };
        let list = [
            outcome("a", "Timeout", &["Build", "Test"]),
            outcome("b", "Timeout", &["Build"]),
            outcome("c", "CaughtMutant", &["Build", "Test"]),
            outcome("d", "MissedMutant", &["Build", "Test"]),
            outcome("e", "Unviable", &["Build"]),
        ];
        let text = format!(r#"{{"outcomes": [{}]}}"#, list.join(","));
        std::fs::write(dir.path().join("outcomes.json"), text).unwrap();
        let found = read(dir.path()).unwrap();
        assert_eq!((found.hung.len(), found.undecided.len(), found.caught.len()), (1, 1, 1));
        assert_eq!((found.missed.len(), found.unviable.len()), (1, 1));
    }
}
