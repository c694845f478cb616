//! `cargo xtask merge`: one report of what several machines found, each with its part of the work.
//!
//! Parts of one command, with the same options, are a set; a folder may hold several sets. `set` says which parts belong together
//! and what is missing, `report` what is told of them.

mod report;
mod set;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use crate::divide::Durations;
use crate::results::{self, Results};
use report::Report;
use set::Part;
use xtask_host::paths;

/// Makes one report of the results of several machines.
#[derive(Args)]
pub struct Merge {
    /// Folders with results, as `--results` wrote them, and folders of such folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Where report.txt, report.json and report.xml go [default: target/alea/merged]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

impl Merge {
    pub fn run(self) -> Result<ExitCode> {
        let into = self.into.unwrap_or_else(|| paths::alea().join("merged"));
        let report = merge(&self.folders)?;
        print!("{}", report.text());
        report.write(&into)?;
        println!("{}, .json and .xml", paths::shown(&into.join("report.txt")));
        Ok(report.tally().conclude())
    }
}

/// All sets in `folders`. What cannot be one report is an error; a part that is missing is told in it.
fn merge(folders: &[PathBuf]) -> Result<Report> {
    let mut files = BTreeSet::new();
    for folder in folders {
        ensure!(folder.is_dir(), "{} is no folder", paths::shown(folder));
        find(folder, &mut files)?;
    }
    let shown: Vec<String> = folders.iter().map(|folder| paths::shown(folder)).collect();
    ensure!(!files.is_empty(), "no results of parts (NAME-K-of-N.json) in {}", shown.join(", "));
    let read = |file: PathBuf| Ok(Part { results: Results::read(&file)?, file });
    let parts = files.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Report::of(set::sets(parts)?))
}

/// Adds the files of results in and below `folder`; one that is reached in two ways counts once.
fn find(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| paths::shown(folder))? {
        let entry = entry?;
        // Links are not followed: a volume's own folders may lead in a circle.
        if entry.file_type()?.is_dir() {
            find(&entry.path(), files)?;
        } else if is_part(&entry.file_name().to_string_lossy()) {
            files.insert(entry.path().canonicalize()?);
        }
    }
    Ok(())
}

/// Whether a name is `NAME-K-of-N.json`.
fn is_part(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = || {
        let (rest, count) = name.strip_suffix(".json")?.rsplit_once("-of-")?;
        let (_, index) = rest.rsplit_once('-')?;
        Some(number(index) && number(count))
    };
    parts().unwrap_or(false)
}

/// Results of a part, or a report, as far as durations stand in them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Earlier {
    Report { sets: Vec<EarlierSet> },
    Part(EarlierPart),
}

#[derive(Deserialize)]
struct EarlierSet {
    parts: Vec<EarlierPart>,
}

#[derive(Deserialize)]
struct EarlierPart {
    command: String,
    cases: Vec<EarlierCase>,
}

#[derive(Deserialize)]
struct EarlierCase {
    unit: String,
    seconds: f64,
}

/// How long pieces of the command `name` took, of a report or of one part's results. Of several sets the longest time counts.
pub fn durations(text: &str, name: &str) -> Result<Durations> {
    let earlier = serde_json::from_str(text).context("neither a report nor results of a part")?;
    let sets = match earlier {
        Earlier::Report { sets } => sets.into_iter().map(|set| set.parts).collect(),
        Earlier::Part(part) => vec![vec![part]],
    };
    let mut longest = Durations::new();
    for parts in sets {
        let mut durations = Durations::new();
        let parts = parts.into_iter().filter(|part| results::name(&part.command) == name);
        for case in parts.flat_map(|part| part.cases) {
            *durations.entry(case.unit).or_default() += case.seconds;
        }
        for (unit, seconds) in durations {
            let most = longest.entry(unit).or_default();
            *most = seconds.max(*most);
        }
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::part;

    const ABI: &str = "cargo xtask abi";
    const ALL: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

    /// A folder with the results of these parts, each in a folder of its own.
    fn folder(parts: &[Results]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, part) in parts.iter().enumerate() {
            part.write(&folder.path().join(number.to_string())).unwrap();
        }
        folder
    }

    fn four(failed: &[&str]) -> Vec<Results> {
        ["1/4", "2/4", "3/4", "4/4"].map(|shard| part(ABI, shard, &ALL, failed)).to_vec()
    }

    fn merged(parts: &[Results]) -> Result<Report> {
        merge(&[folder(parts).path().to_owned()])
    }

    /// What merging these is refused with.
    fn refused(parts: &[Results]) -> String {
        merged(parts).map(|report| report.text()).unwrap_err().to_string()
    }

    #[test]
    fn all_parts_that_passed_make_a_good_report() {
        let report = merged(&four(&[])).unwrap();
        let tally = report.tally();
        assert_eq!((tally.passed, tally.failed), (7, 0));
        assert!(
            report.text().contains("cargo xtask abi: 4 parts, 7 pieces, 7 cases"),
            "{}",
            report.text()
        );
    }

    #[test]
    fn what_failed_is_told_with_its_part_and_the_line_that_repeats_it() {
        let report = merged(&four(&["d"])).unwrap();
        assert_eq!((report.tally().passed, report.tally().failed), (6, 1));
        let text = report.text();
        for want in ["FAILED  d (part 4/4, machine-3): it broke", "repeat: cargo xtask abi d\n"] {
            assert!(text.contains(want), "{want} is not in\n{text}");
        }
    }

    #[test]
    fn a_missing_part_is_named_and_fails() {
        let mut parts = four(&[]);
        parts.remove(2);
        parts.remove(0);
        let report = merged(&parts).unwrap();
        assert_eq!(report.tally().failed, 2);
        let text = report.text();
        assert!(text.contains("MISSING cargo xtask abi --shard 1/4\n"), "{text}");
        assert!(text.contains("MISSING cargo xtask abi --shard 3/4\n"), "{text}");
    }

    #[test]
    fn a_part_that_is_there_twice_is_refused() {
        let mut parts = four(&[]);
        parts.push(parts[1].clone());
        let error = refused(&parts);
        assert!(error.contains("part 2/4 of `cargo xtask abi` is there twice"), "{error}");
        assert!(
            error.contains("1/abi-2-of-4.json") && error.contains("4/abi-2-of-4.json"),
            "{error}"
        );
    }

    #[test]
    fn parts_that_overlap_are_refused() {
        let mut parts = four(&[]);
        let unit = parts[0].units[0].clone();
        parts[3].units.push(unit);
        assert!(refused(&parts).contains("\"a\" is in two parts"), "{}", refused(&parts));
    }

    #[test]
    fn parts_that_are_not_the_whole_are_refused() {
        let mut parts = four(&[]);
        parts[0].units.remove(0);
        assert!(refused(&parts).contains("are not the whole"), "{}", refused(&parts));
    }

    #[test]
    fn parts_of_different_divisions_work_or_sources_are_refused() {
        let mut parts = four(&[]);
        parts[3] = part(ABI, "1/3", &ALL, &[]);
        assert!(refused(&parts).contains("parts of 3 and of 4"), "{}", refused(&parts));
        parts[3] = part(ABI, "4/4", &ALL[1..], &[]);
        assert!(refused(&parts).contains("other work"), "{}", refused(&parts));
        parts = four(&[]);
        parts[2].source = "another".into();
        assert!(refused(&parts).contains("other sources"), "{}", refused(&parts));
    }

    #[test]
    fn several_sets_make_one_report() {
        let mut parts = four(&[]);
        parts.push(part("cargo xtask abi --cpu qemu64", "1/2", &ALL, &["a"]));
        parts.push(part("cargo xtask abi --cpu qemu64", "2/2", &ALL, &[]));
        let report = merged(&parts).unwrap();
        assert_eq!((report.tally().passed, report.tally().failed), (13, 1));
    }

    #[test]
    fn a_folder_that_is_named_twice_counts_once_and_one_without_results_is_an_error() {
        let parts = folder(&four(&[]));
        let all = [parts.path().to_owned(), parts.path().join("0")];
        assert_eq!(merge(&all).unwrap().tally().passed, 7);
        let empty = tempfile::tempdir().unwrap();
        assert!(merge(&[empty.path().to_owned()]).is_err());
        assert!(merge(&[parts.path().join("none")]).is_err());
        assert!(merge(&[]).is_err());
    }

    #[test]
    fn a_broken_file_is_named() {
        let parts = folder(&four(&[]));
        fs::write(parts.path().join("0/abi-1-of-4.json"), "{").unwrap();
        let error = merge(&[parts.path().to_owned()]).map(|report| report.text()).unwrap_err();
        assert!(format!("{error:#}").contains("abi-1-of-4.json"), "{error:#}");
    }

    #[test]
    fn names_of_results() {
        assert!(is_part("abi-1-of-4.json") && is_part("random-stats-10-of-12.json"));
        for other in
            ["report.json", "abi-1-of-4.xml", "abi-x-of-4.json", "-of-.json", "a-1-of-.json"]
        {
            assert!(!is_part(other), "{other}");
        }
    }

    #[test]
    fn a_report_tells_durations_to_the_next_run() {
        let into = tempfile::tempdir().unwrap();
        merged(&four(&["d"])).unwrap().write(into.path()).unwrap();
        let text = fs::read_to_string(into.path().join("report.json")).unwrap();
        let known = durations(&text, "abi").unwrap();
        assert_eq!(known.len(), 7);
        assert_eq!(known["a"], 1.5);
        assert!(durations(&text, "soak").unwrap().is_empty());
        let one = serde_json::to_string(&four(&[])[0]).unwrap();
        assert_eq!(durations(&one, "abi").unwrap().len(), 2);
        assert!(durations("{}", "abi").is_err());
        let xml = fs::read_to_string(into.path().join("report.xml")).unwrap();
        assert_eq!(quick_junit::Report::deserialize_from_str(&xml).unwrap().failures, 1);
    }
}
