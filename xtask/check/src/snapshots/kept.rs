//! What runs of `cargo xtask snapshots --keep` have looked at, together: `target/alea/snapshots.json`.
//!
//! Owns that file, which belongs to one kernel: another one has other instructions, and the file begins anew. Runs of different
//! operations may go on side by side, as each adds what it has found under the file's lock; of two of the same operation, which
//! both look at what follows a read of the id, the second is refused. Never counts an instruction twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{Found, SCENARIOS};
use xtask_host::{paths, process};
use xtask_tidy::shown::Figures;

/// The table that shows it, in docs/random.md.
const TABLE: &str = "snapshots";

/// The file, for one kernel.
pub struct Kept {
    file: PathBuf,
    kernel: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct All {
    /// The SHA-256 of the kernel.
    kernel: String,
    operations: BTreeMap<String, Operation>,
}

/// What is known of one operation.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Operation {
    /// The day of the last run, as `date --utc +%F` writes it.
    #[serde(default)]
    day: String,
    /// The machine that it began on, if that is the same at each start.
    #[serde(default)]
    start: Option<String>,
    instructions: u64,
    reads: u64,
    looked_at: BTreeSet<u64>,
    twins: u64,
    compared: u64,
    compared_in_part: u64,
    held: u64,
    windows: u64,
}

impl Kept {
    pub fn of(kernel: &Path) -> Result<Self> {
        let file = paths::alea().join("snapshots.json");
        let answer = process::output(Command::new("sha256sum").arg(kernel))?;
        let hash = answer.split(' ').next().context("sha256sum says nothing")?;
        Ok(Self { file, kernel: hash.to_owned() })
    }

    fn read(&self) -> Result<All> {
        let new = All { kernel: self.kernel.clone(), ..All::default() };
        if !self.file.exists() {
            return Ok(new);
        }
        let all: All = serde_json::from_str(&fs::read_to_string(&self.file)?)?;
        Ok(if all.kernel == self.kernel { all } else { new })
    }

    /// The instructions of an operation that were looked at.
    pub fn looked_at(&self, name: &str) -> Result<BTreeSet<u64>> {
        Ok(self.read()?.operations.remove(name).unwrap_or_default().looked_at)
    }

    /// Adds what a run has found that left those out.
    pub fn add(&self, name: &str, found: &Found) -> Result<()> {
        let lock = File::create(self.file.with_extension("lock"))?;
        lock.lock()?;
        let mut all = self.read()?;
        let day = process::output(Command::new("date").args(["--utc", "+%F"]))?;
        all.operations.entry(name.to_owned()).or_default().add(found, day.trim())?;
        let new = self.file.with_extension("new");
        fs::write(&new, serde_json::to_string(&all)?)?;
        Ok(fs::rename(new, &self.file)?)
    }

    /// Puts all of it into the table of docs/random.md.
    pub fn write(&self) -> Result<()> {
        let all = self.read()?;
        let mut figures = Figures::load(paths::root())?;
        for name in SCENARIOS.iter().map(|scenario| scenario.name) {
            if let Some(operation) = all.operations.get(name) {
                figures.set_or_add(TABLE, &name.replace('|', "\\|"), &operation.cells())?;
            }
        }
        figures.write(paths::root())
    }
}

impl Operation {
    fn add(&mut self, found: &Found, day: &str) -> Result<()> {
        let twice = found.looked_at.iter().find(|at| self.looked_at.contains(at));
        ensure!(twice.is_none(), "another run has looked at instruction {twice:?} meanwhile");
        // What began elsewhere may go another way, and the numbers of its instructions are others then.
        let way = (&found.start, found.instructions);
        let before = (&self.start, self.instructions);
        ensure!(
            self.looked_at.is_empty() || way == before,
            "{way:?}, and {before:?} in earlier runs"
        );
        self.start.clone_from(&found.start);
        day.clone_into(&mut self.day);
        (self.instructions, self.reads) = (found.instructions, found.reads);
        self.looked_at.extend(&found.looked_at);
        self.twins += found.twins;
        self.compared += found.compared;
        self.compared_in_part += found.compared_in_part;
        self.held += found.held;
        self.windows += found.faults.iter().map(|fault| fault.common.windows as u64).sum::<u64>();
        Ok(())
    }

    fn cells(&self) -> [(&'static str, String); 8] {
        let end = match self.compared_in_part {
            0 => grouped(self.compared),
            part => format!("{}, and {} of half of it", grouped(self.compared), grouped(part)),
        };
        let looked = self.looked_at.len() as u64;
        let share = 100.0 * looked as f64 / self.instructions as f64;
        let digits = usize::from(share < 10.0);
        [
            ("on", self.day.clone()),
            ("instructions", grouped(self.instructions)),
            ("that read the id", grouped(self.reads)),
            ("looked at", format!("{} ({share:.digits$} %)", grouped(looked))),
            ("pairs of twins", grouped(self.twins)),
            ("of the call's end", end),
            ("held", grouped(self.held)),
            ("equal windows", grouped(self.windows)),
        ]
    }
}

/// 1,234,567.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(looked_at: &[u64]) -> Found {
        let count = looked_at.len() as u64;
        Found {
            instructions: 2000,
            reads: 2,
            twins: count,
            looked_at: looked_at.into(),
            ..Found::default()
        }
    }

    #[test]
    fn slices_are_added_and_a_kernel_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept.json");
        let of = |kernel: &str| Kept { file: file.clone(), kernel: kernel.to_owned() };
        of("a").add("reseed", &found(&[1, 2])).unwrap();
        of("a").add("reseed", &found(&[3])).unwrap();
        assert!(of("a").add("reseed", &found(&[3, 4])).is_err(), "3 counts twice");
        let another_way = Found { instructions: 2001, ..found(&[5]) };
        assert!(of("a").add("reseed", &another_way).is_err(), "another way has other instructions");
        let elsewhere = Found { start: Some("0".into()), ..found(&[5]) };
        assert!(of("a").add("reseed", &elsewhere).is_err(), "it began elsewhere");
        of("a").add("vDSO", &found(&[7])).unwrap();
        assert_eq!(of("a").looked_at("reseed").unwrap(), BTreeSet::from([1, 2, 3]));
        let all = of("a").read().unwrap();
        let cells = all.operations["reseed"].cells();
        assert_eq!(cells[3].1, "3 (0.1 %)");
        assert_eq!(cells[4].1, "3");
        assert_eq!(cells[1].1, "2,000");
        assert!(of("b").looked_at("reseed").unwrap().is_empty());
    }
}
