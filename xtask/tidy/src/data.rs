//! The data file: what the rules allow and forbid, and what is excepted from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The data file, which may name what it forbids.
pub const FILE: &str = "xtask/tidy.toml";

/// Keys of excused faults, by rule.
pub type Exceptions = BTreeMap<String, BTreeSet<String>>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Of the rules and of the layout they speak of: lists of exceptions are compared within one.
    #[serde(default)]
    #[expect(dead_code, reason = "`shrink` reads it, of this file and of earlier ones")]
    pub edition: u32,
    #[serde(default)]
    pub forbid: Vec<String>,
    #[serde(default)]
    pub unsafe_below: Vec<String>,
    /// Where each file has the head that otherwise only those need that share something.
    #[serde(default)]
    pub heads_below: Vec<String>,
    /// Circles that are meant.
    #[serde(default)]
    pub circle: Vec<Circle>,
    #[serde(default)]
    pub floor: Vec<Floor>,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub except: Exceptions,
}

/// A floor of the kernel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    pub level: u32,
    /// Files and folders; a longer path wins over a shorter one.
    pub paths: Vec<String>,
    pub what: String,
}

/// A circle that is meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circle {
    /// Where its rooms are: a folder, with a slash at its end.
    pub below: String,
    /// All its rooms, which are files (without `.rs`) and folders.
    pub rooms: BTreeSet<String>,
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub file_lines: usize,
    pub function_lines: usize,
    pub folder_files: usize,
    pub binary_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_lines: 500, function_lines: 60, folder_files: 20, binary_bytes: 4096 }
    }
}

impl Rules {
    pub fn load(root: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(root.join(FILE)).context(FILE)?)
    }

    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_are_an_error() {
        assert!(Rules::parse("allow = [\"everything\"]\n").is_err());
        assert!(Rules::parse("[limits]\nfile_words = 3\n").is_err());
        assert!(Rules::parse("forbid = [\"LATER\"]\n").is_ok());
    }
}
