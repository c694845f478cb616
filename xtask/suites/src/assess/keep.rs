//! Where the data of an assessment are kept, between taking and judging them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::collect::End;
use xtask_host::{paths, process};

/// The folder of one machine's data.
pub struct Kept(PathBuf);

/// What is known of the data besides the bytes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Notes {
    pub circumstances: Circumstances,
    /// Consecutive samples of more than eight bits.
    pub wider: u32,
    /// What the collection of the consecutive samples came to.
    pub end: End,
    /// How many starts there were.
    pub restarts: u32,
    /// Starts that the health tests refused; their samples are not kept.
    pub refused: u32,
}

/// Where, when and how the samples were taken.
#[derive(Debug, Serialize, Deserialize)]
pub struct Circumstances {
    pub machine: String,
    /// What follows `cargo xtask`.
    pub command: String,
    /// The day, as `date --utc +%F` writes it.
    pub day: String,
    pub commit: String,
    /// The host's load over the minute before.
    pub load: String,
}

impl Circumstances {
    /// Those of this moment.
    pub fn now(machine: String) -> Result<Self> {
        let first = |text: String| text.split_whitespace().next().unwrap_or("unknown").to_owned();
        let words = std::env::args().skip(1).filter(|word| word != "--write");
        Ok(Self {
            machine,
            command: words.collect::<Vec<_>>().join(" "),
            day: first(process::output(Command::new("date").args(["--utc", "+%F"]))?),
            commit: commit(),
            load: first(fs::read_to_string("/proc/loadavg")?),
        })
    }
}

/// The commit of the tree, and whether files differ from it.
fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12"]).current_dir(paths::root());
    process::output(&mut git).map_or("unknown".to_owned(), |name| name.trim().to_owned())
}

impl Kept {
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self(folder.to_owned()))
    }

    /// The samples of one start, a byte each.
    pub fn consecutive(&self) -> PathBuf {
        self.0.join("consecutive.bin")
    }

    /// A thousand samples of each start, one start after the other.
    pub fn restarts(&self) -> PathBuf {
        self.0.join("restarts.bin")
    }

    pub fn put_consecutive(&self, samples: &[u8]) -> Result<()> {
        // What earlier starts gave belongs to other samples.
        fs::write(self.restarts(), [])?;
        Ok(fs::write(self.consecutive(), samples)?)
    }

    pub fn put_restarts(&self, matrix: &[u8]) -> Result<()> {
        Ok(fs::write(self.restarts(), matrix)?)
    }

    pub fn put_notes(&self, notes: &Notes) -> Result<()> {
        Ok(fs::write(self.0.join("notes.json"), serde_json::to_string_pretty(notes)?)?)
    }

    pub fn notes(&self) -> Result<Notes> {
        let text = fs::read_to_string(self.0.join("notes.json")).context("no samples were kept")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The files with the samples, and the SHA-256 of each in hexadecimal.
    pub fn hashes(&self) -> Result<Vec<(String, String)>> {
        let of = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, sha256(&path)?))
        };
        [self.consecutive(), self.restarts()].into_iter().map(of).collect()
    }

    /// A file of that name beside the data.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn sha256(path: &Path) -> Result<String> {
    let answer = process::output(Command::new("sha256sum").arg(path))?;
    Ok(answer.split(' ').next().context("sha256sum says nothing")?.to_owned())
}
