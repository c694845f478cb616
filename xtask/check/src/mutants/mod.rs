//! `cargo xtask mutants`: no line of the entropy core can be changed without a test that fails.
//!
//! cargo-mutants makes the changes that a machine can think of; `kernel/random/mutants.toml` has those that it cannot (wipes
//! left out, constants), what is not changed at all, and what survives with the reason why. A survivor that is not listed
//! fails, and so does an entry that has no mutant any more or whose mutant a test catches by now: the list gets shorter only.
//!
//! Each file's own tests are run first, and all of them on what survives these.

mod data;
mod run;
mod tree;
mod verdict;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::data::Data;
use self::run::Selection;
use self::verdict::Outcomes;
use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need};
use xtask_shards::shard::Shard;

/// Of how many parts a sample has one, beside what has changed.
const PARTS: u32 = 24;

/// So many new lines are tested in some minutes.
const FEW: usize = 300;

/// Changes the entropy core in every way there is, and wants a test to fail each time.
#[derive(Args)]
pub struct Mutants {
    /// Only files of this name, such as `crng.rs`
    #[arg(long, value_name = "NAME")]
    file: Vec<String>,
    /// Only part K of N, counted from 1
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Only what lines touch that have changed since this commit
    #[arg(long, value_name = "COMMIT", conflicts_with = "shard")]
    since: Option<String>,
    /// What CI runs: lines that have changed since the last landing, if they are few, and one part of 24, another one each time
    #[arg(long, conflicts_with_all = ["shard", "since", "file"])]
    sample: bool,
    /// How many at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Mutants {
    pub fn run(self) -> Result<ExitCode> {
        if self.sample {
            sample()?;
            return Ok(ExitCode::SUCCESS);
        }
        let selection = match (self.shard, &self.since) {
            (Some(shard), _) => Selection::Part(shard),
            (None, Some(commit)) => Selection::Diff(diff(commit)?),
            (None, None) => Selection::All,
        };
        test(&selection, &self.file, self.jobs)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What CI runs: mutants of lines that have changed since the last landing, if those are few, and one part of all,
/// which moves on with each commit.
pub fn sample() -> Result<()> {
    if let Some(base) = last_landing() {
        let diff = diff(&base)?;
        let added = diff.lines().filter(|line| line.starts_with('+')).count();
        if added <= FEW {
            test(&Selection::Diff(diff), &[], 2)?;
        } else {
            println!(
                "{added} lines of the entropy core are new: `cargo xtask mutants` tests them all"
            );
        }
    }
    let commits = process::output(git().args(["rev-list", "--count", "HEAD"]))?;
    let commits: u64 = commits.trim().parse().context("git rev-list --count")?;
    test(&Selection::Part(Shard::at(commits, PARTS)), &[], 2)
}

fn test(selection: &Selection, names: &[String], jobs: usize) -> Result<()> {
    setup::ensure(&[Need::Mutants])?;
    let start = Instant::now();
    let data = Data::load()?;
    let made = run::list(&data)?;
    let outcomes = run::all(&data, selection, names, jobs)?;
    println!("{selection}: {outcomes} in {:.0} s", start.elapsed().as_secs_f64());
    report(&data, &made, &outcomes)
}

fn report(data: &Data, made: &[String], outcomes: &Outcomes) -> Result<()> {
    let faults = verdict::faults(&data.missed, made, outcomes);
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("\n")) }
}

/// Where this clone parted from what was landed; without a remote, the commit before.
fn last_landing() -> Option<String> {
    let commit = |words: &[&str]| {
        process::output(git().args(words)).ok().map(|commit| commit.trim().to_owned())
    };
    let head = commit(&["rev-parse", "HEAD"])?;
    let base = commit(&["merge-base", "HEAD", "origin/main"]).filter(|base| *base != head);
    base.or_else(|| commit(&["rev-parse", "--verify", "--quiet", "HEAD~1"]))
}

fn diff(since: &str) -> Result<String> {
    process::output(git().args(["diff", since, "--", "kernel/random/src"]))
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(paths::root());
    git
}
