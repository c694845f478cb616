//! What came of one part, as all commands write it: `NAME-K-of-N.json`, and the same as JUnit XML beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::junit;
use crate::shard::Shard;
use xtask_host::paths;

/// Of the form of the files; merging refuses any other.
pub const FORMAT: u32 = 1;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    /// Not as it should be, in a way that is known and has a reason.
    Known,
    /// Not run, and for a reason.
    Skipped,
    Failed,
}

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The piece of work that it is of: what is divided among machines.
    pub unit: String,
    pub name: String,
    pub verdict: Verdict,
    /// How long it took, on the clock of the machine that ran it.
    pub seconds: f64,
    /// What went wrong, or what is known of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The line that tries this alone, once more.
    pub repeat: String,
    /// What was measured, if anything was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

impl Case {
    /// A case that is a whole piece of work.
    pub fn of(unit: &str, verdict: Verdict, seconds: f64, message: &str, repeat: &str) -> Self {
        Self {
            unit: unit.to_owned(),
            name: unit.to_owned(),
            verdict,
            seconds,
            message: message.trim_end().to_owned(),
            repeat: repeat.to_owned(),
            figures: BTreeMap::new(),
        }
    }
}

/// All pieces of the work that is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    pub units: usize,
    /// Of their names.
    pub digest: String,
}

/// What came of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: u32,
    /// The command whose work was divided, without what divides it.
    pub command: String,
    pub shard: Shard,
    pub whole: Whole,
    /// The commit that was tried.
    pub source: String,
    /// The machine's name, and when its part ended.
    pub host: String,
    pub date: String,
    pub seconds: f64,
    /// The pieces that this part has.
    pub units: Vec<String>,
    pub cases: Vec<Case>,
}

impl Results {
    /// The command's own name, such as `abi`.
    pub fn name(&self) -> &str {
        name(&self.command)
    }

    /// Writes both files into `folder`, each whole or not at all. Those of the same part of the same work are replaced, as when
    /// a machine died and another one did it again; any others are left alone, with an error.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder).with_context(|| paths::shown(folder))?;
        let stem = format!("{}-{}", self.name(), self.shard.file_name());
        let file = folder.join(format!("{stem}.json"));
        if file.exists() {
            let old = Self::read(&file)?;
            ensure!(
                old.command == self.command,
                "{} is of `{}`: name another folder for `{}`",
                paths::shown(&file),
                old.command,
                self.command
            );
        }
        put(&folder.join(format!("{stem}.xml")), &junit::of_part(self)?)?;
        put(&file, &(serde_json::to_string_pretty(self)? + "\n"))?;
        Ok(file)
    }

    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| paths::shown(file))?;
        let results: Self = serde_json::from_str(&text)
            .with_context(|| format!("{}: no results of a part", paths::shown(file)))?;
        let format = results.format;
        ensure!(format == FORMAT, "{}: of form {format}, not {FORMAT}", paths::shown(file));
        Ok(results)
    }
}

/// The name of a command: `abi` of `cargo xtask abi --smp 2`.
pub fn name(command: &str) -> &str {
    command.split_whitespace().nth(2).unwrap_or("work")
}

/// Writes a file whole, by rename.
pub fn put(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().context("a file without a folder")?;
    let mut new = NamedTempFile::new_in(folder).with_context(|| paths::shown(folder))?;
    new.write_all(text.as_bytes())?;
    // Others read it too: a temporary file is its owner's alone.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    new.as_file().set_permissions(mode)?;
    new.persist(file).with_context(|| paths::shown(file))?;
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::divide;

    /// Part `shard` of the work on `all`, which passed, but for the pieces that are named.
    pub fn part(command: &str, shard: &str, all: &[&str], failed: &[&str]) -> Results {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        let shard: Shard = shard.parse().unwrap();
        let units = divide::part(&all, shard, &divide::Durations::new()).unwrap();
        let case = |unit: &String| {
            let bad = failed.contains(&unit.as_str());
            let (verdict, why) =
                if bad { (Verdict::Failed, "it broke\nhere") } else { (Verdict::Passed, "") };
            Case::of(unit, verdict, 1.5, why, &format!("cargo xtask abi {unit}"))
        };
        Results {
            format: FORMAT,
            command: command.to_owned(),
            shard,
            whole: Whole {
                units: all.len(),
                digest: divide::digest(all.iter().map(String::as_str)),
            },
            source: "0123456789ab".into(),
            host: format!("machine-{}", shard.place()),
            date: "2026-11-27T08:00:00Z".into(),
            seconds: 3.0,
            cases: units.iter().map(case).collect(),
            units,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = part("cargo xtask abi --smp 2", "2/3", &["a", "b", "c", "d"], &["b"]);
        results.cases[0].figures.insert("linux".into(), 1.5);
        let file = results.write(folder.path()).unwrap();
        assert_eq!(file, folder.path().join("abi-2-of-3.json"));
        assert_eq!(Results::read(&file).unwrap(), results);
        assert!(folder.path().join("abi-2-of-3.xml").is_file());
        // Nothing else is left behind.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_part_done_again_takes_the_place_of_the_first_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let first = part("cargo xtask abi", "1/2", &["a", "b"], &["a"]);
        first.write(folder.path()).unwrap();
        let again = part("cargo xtask abi", "1/2", &["a", "b"], &[]);
        let file = again.write(folder.path()).unwrap();
        assert_eq!(Results::read(&file).unwrap(), again);
        let other = part("cargo xtask abi --smp 2", "1/2", &["a", "b"], &[]);
        let error = other.write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("name another folder"), "{error}");
        assert_eq!(Results::read(&file).unwrap(), again);
    }

    #[test]
    fn half_a_file_and_another_form_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = part("cargo xtask abi", "1/1", &["a"], &[]);
        results.format = 99;
        let file = results.write(folder.path()).unwrap();
        assert!(format!("{:#}", Results::read(&file).unwrap_err()).contains("of form 99"));
        fs::write(&file, "{\"format\": 1, \"comm").unwrap();
        let error = format!("{:#}", Results::read(&file).unwrap_err());
        assert!(error.contains("abi-1-of-1.json"), "{error}");
    }
}
