//! `kernel/random/mutants.toml`: what is changed beyond what cargo-mutants changes, and what may survive.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use xtask_host::paths;

/// From the repository's root.
const FILE: &str = "kernel/random/mutants.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// What no mutants are made of.
    pub exclude: Vec<Exclude>,
    /// For each file of `src` the tests that are run first, where they are not the one of the same name.
    pub first: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub missed: Vec<Missed>,
    pub change: Vec<Change>,
}

/// A rule for names of mutants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclude {
    /// A regular expression.
    pub names: String,
    #[serde(rename = "why")]
    _why: String,
}

/// A mutant that no test catches.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// In `src`.
    pub file: String,
    /// As cargo-mutants says it, without the place, which moves.
    pub mutant: String,
    #[serde(rename = "why")]
    _why: String,
}

/// A change of our own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// In `src`.
    pub file: String,
    /// Text that is there once.
    pub from: String,
    pub to: String,
}

impl Data {
    pub fn load() -> Result<Self> {
        let text = std::fs::read_to_string(paths::source(FILE)).context(FILE)?;
        toml::from_str(&text).context(FILE)
    }

    /// The names of the tests that are run first on mutants of `file`; there may be none of that name.
    pub fn first(&self, file: &str) -> Vec<String> {
        let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
        self.first.get(file).cloned().unwrap_or_else(|| vec![stem.to_owned()])
    }
}

#[cfg(test)]
impl Missed {
    pub fn new(file: &str, mutant: &str) -> Self {
        Self { file: file.into(), mutant: mutant.into(), _why: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    /// A change that cannot be made tests nothing.
    #[test]
    fn every_change_can_be_made() {
        let data = Data::load().unwrap();
        for Change { file, from, to } in &data.change {
            let text = std::fs::read_to_string(paths::source("kernel/random/src").join(file));
            let found = text.unwrap().matches(from.as_str()).count();
            assert_eq!(found, 1, "{file}: `{from}` is there {found} times");
            assert!(from != to && !from.is_empty());
        }
        assert!(data.change.len() >= 20);
    }

    #[test]
    fn every_test_that_is_run_first_is_there() {
        let data = Data::load().unwrap();
        for (file, tests) in &data.first {
            assert!(paths::source("kernel/random/src").join(file).exists(), "{file}");
            for test in tests {
                assert!(tree::tests().unwrap().contains(test), "{test}");
            }
        }
    }
}
