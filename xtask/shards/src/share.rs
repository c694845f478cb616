//! How a command asks for its part of the work, and hands in what came of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::divide::{self, Durations};
use crate::merge;
use crate::results::{Case, FORMAT, Results, Verdict, Whole};
use crate::shard::Shard;
use xtask_host::{paths, process};

/// The options of every command whose work can be divided among machines.
#[derive(Args, Clone, Debug, Default)]
pub struct ShardArgs {
    /// Only part K of N, counted from 1: the parts are the whole, and none has anything of another
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Write what came of it into this folder, as JSON and as JUnit XML, for `cargo xtask merge`
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Divide by how long each piece took there: the report (JSON) of an earlier run, the same one for every part
    #[arg(long, value_name = "FILE", requires = "shard")]
    pub durations: Option<PathBuf>,
}

/// This machine's part of the work of one command.
pub struct Share {
    /// Its pieces, in the order in which the work has them.
    pub units: Vec<String>,
    command: String,
    shard: Shard,
    whole: Whole,
    results: Option<PathBuf>,
    started: Instant,
}

impl ShardArgs {
    /// Whether anything of it was asked for.
    pub fn is_asked(&self) -> bool {
        self.shard.is_some() || self.results.is_some()
    }

    /// The part of `all` pieces. `command` is the whole command without these options: what belongs together has the same.
    pub fn share(&self, command: &str, all: &[String]) -> Result<Share> {
        let durations = match &self.durations {
            Some(file) => durations(file, command)?,
            None => Durations::new(),
        };
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let units = divide::part(all, shard, &durations)?;
        if let Some(shard) = self.shard {
            println!("part {shard}: {} of {}", units.len(), all.len());
        }
        Ok(Share {
            command: command.to_owned(),
            shard,
            whole: Whole {
                units: all.len(),
                digest: divide::digest(all.iter().map(String::as_str)),
            },
            results: self.results.clone(),
            started: Instant::now(),
            units,
        })
    }
}

impl Share {
    /// Writes what came of it, if that was asked for; a failure if any case is one. A piece of which there is no case has failed.
    pub fn finish(self, mut cases: Vec<Case>) -> Result<ExitCode> {
        let told: BTreeSet<&str> = cases.iter().map(|case| case.unit.as_str()).collect();
        let silent: Vec<&String> =
            self.units.iter().filter(|unit| !told.contains(unit.as_str())).collect();
        let silent: Vec<Case> = silent
            .into_iter()
            .map(|unit| Case::of(unit, Verdict::Failed, 0.0, "gave no result", &self.command))
            .collect();
        for case in &silent {
            println!("FAILED  {}: {}", case.unit, case.message);
        }
        cases.extend(silent);
        let is_good = cases.iter().all(|case| case.verdict != Verdict::Failed);
        let code = if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        let Some(folder) = &self.results else { return Ok(code) };
        let results = Results {
            format: FORMAT,
            command: self.command,
            shard: self.shard,
            whole: self.whole,
            source: source(),
            host: host(),
            date: process::output(Command::new("date").args(["-u", "+%FT%TZ"]))?.trim().to_owned(),
            seconds: self.started.elapsed().as_secs_f64(),
            units: self.units,
            cases,
        };
        let file = results.write(folder)?;
        println!("results: {}", paths::shown(&file));
        Ok(code)
    }
}

/// The commit that is tried.
fn source() -> String {
    let mut git = process::git();
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    process::output(&mut git).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// How long the pieces of `command` took in an earlier run.
fn durations(file: &Path, command: &str) -> Result<Durations> {
    let text = fs::read_to_string(file).with_context(|| paths::shown(file))?;
    let durations = merge::durations(&text, crate::results::name(command))
        .with_context(|| paths::shown(file))?;
    ensure!(!durations.is_empty(), "{} knows nothing of `{command}`", paths::shown(file));
    Ok(durations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_without_a_case_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let args = ShardArgs { results: Some(folder.path().to_owned()), ..ShardArgs::default() };
        let all = ["a", "b"].map(String::from);
        let share = args.share("cargo xtask abi", &all).unwrap();
        let code = share.finish(vec![Case::of("a", Verdict::Passed, 1.0, "", "again")]).unwrap();
        assert_eq!(code, ExitCode::FAILURE);
        let read = Results::read(&folder.path().join("abi-1-of-1.json")).unwrap();
        assert_eq!(read.whole.units, 2);
        let [a, b] = read.cases.as_slice() else { panic!("{read:?}") };
        assert_eq!((a.verdict, b.verdict), (Verdict::Passed, Verdict::Failed));
        assert_eq!((b.unit.as_str(), b.message.as_str()), ("b", "gave no result"));
    }

    #[test]
    fn durations_of_another_command_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let results = Some(folder.path().to_owned());
        let args = ShardArgs { results, ..ShardArgs::default() };
        let share = args.share("cargo xtask abi", &["a".to_owned()]).unwrap();
        let code = share.finish(vec![Case::of("a", Verdict::Passed, 1.0, "", "again")]).unwrap();
        assert_eq!(code, ExitCode::SUCCESS);
        let args = ShardArgs {
            shard: Some("1/2".parse().unwrap()),
            durations: Some(folder.path().join("abi-1-of-1.json")),
            results: None,
        };
        assert!(args.share("cargo xtask abi --smp 2", &["a".to_owned()]).is_ok());
        let error = args.share("cargo xtask soak", &["a".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("knows nothing of `cargo xtask soak`"), "{error}");
    }
}
