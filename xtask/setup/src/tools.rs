//! Programs of crates.io that this repository uses: of one version each, below `target/`, and nowhere else.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use xtask_host::{paths, process};

/// A subcommand of cargo that somebody has published.
pub struct Tool {
    name: &'static str,
    version: &'static str,
    /// What cargo calls it by.
    word: &'static str,
    /// Whether it is compiled without optimisation: where that takes longer than all that it will ever do.
    quickly: bool,
}

/// cargo-mutants, which makes mutants of code. Another version makes others: its new ones are looked at when it is raised.
/// Compiled in two minutes.
pub const MUTANTS: Tool =
    Tool { name: "cargo-mutants", version: "27.1.0", word: "mutants", quickly: false };

/// cargo-semver-checks, which compares two versions of a crate's interface, for the Rust that was newest when it came out.
/// More than 300 crates: without optimisation they are compiled in eight minutes of CPU time, with it in thirty.
pub const SEMVER_CHECKS: Tool =
    Tool { name: "cargo-semver-checks", version: "0.51.0", word: "semver-checks", quickly: true };

impl Tool {
    /// Where [`provide`](Self::provide) puts it.
    pub fn program(&self) -> PathBuf {
        folder().join("bin").join(self.name)
    }

    /// Why it is not there in the version that is wanted.
    pub fn missing(&self) -> Option<String> {
        let mut asked = Command::new(self.program());
        let told = process::output(asked.args([self.word, "--version"])).unwrap_or_default();
        (told.split_whitespace().nth(1) != Some(self.version))
            .then(|| format!("no {} {}", self.name, self.version))
    }

    /// Compiles it with the versions of other crates that its authors tested.
    pub(crate) fn provide(&self) -> Result<()> {
        let (name, version) = (self.name, self.version);
        let mut install = process::cargo();
        install.args(["install", "--locked", "--version", version, "--root"]).arg(folder());
        if self.quickly {
            install.arg("--debug").env("CARGO_PROFILE_DEV_DEBUG", "false");
        }
        process::run(&format!("installing {name} {version}"), install.arg(name))
    }
}

fn folder() -> PathBuf {
    paths::alea().join("tools")
}
