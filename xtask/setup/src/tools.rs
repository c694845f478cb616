//! Programs of crates.io that this repository uses: of one version each, below `target/`, and nowhere else.

use std::path::PathBuf;

use anyhow::Result;

use xtask_host::{paths, process};

/// cargo-mutants, which makes mutants of code. Another version makes others: its new ones are looked at when it is raised.
const MUTANTS: (&str, &str) = ("cargo-mutants", "27.1.0");

/// Where [`provide_mutants`] puts it.
pub fn mutants() -> PathBuf {
    folder().join("bin").join(MUTANTS.0)
}

fn folder() -> PathBuf {
    paths::alea().join("tools")
}

/// Why it is not there in the version that is wanted.
pub(crate) fn mutants_missing() -> Option<String> {
    let mut version = std::process::Command::new(mutants());
    let told = process::output(version.args(["mutants", "--version"])).unwrap_or_default();
    (told.split_whitespace().nth(1) != Some(MUTANTS.1))
        .then(|| format!("no {} {}", MUTANTS.0, MUTANTS.1))
}

/// Compiles it, which takes two minutes, with the versions that its authors tested.
pub(crate) fn provide_mutants() -> Result<()> {
    let (name, version) = MUTANTS;
    let mut install = process::cargo();
    install.args(["install", "--locked", "--version", version, "--root"]).arg(folder()).arg(name);
    process::run(&format!("installing {name} {version}"), &mut install)
}
