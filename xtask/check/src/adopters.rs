//! `cargo xtask crate`: alea-random as those see it who depend on it without the rest of this repository.
//!
//! Every combination of features, the oldest Rust that the manifest promises, other architectures, the package as it would be
//! published, and its interface against that of the commit that gave it its version.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::bare;
use xtask_host::tally::Tally;
use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need, TARGET};
use xtask_setup::tools;

const PACKAGE: &str = "alea-random";
const FOLDER: &str = "kernel/random";
const TARGET_DIR: &str = "target/crate";

/// What a package is expected to bring beside its code.
const TEXTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Words of cargo when the registry cannot be reached, which is nobody's mistake.
const OFFLINE: [&str; 3] = ["failed to update registry", "Could not resolve host", "download of"];

/// Checks alea-random as its adopters use it: features, oldest Rust, other architectures, package, interface
#[derive(Args)]
pub struct Crate {}

/// Passed, or why it could not be tried.
type Check = fn() -> Result<Option<String>>;

/// What `cargo xtask ci` does, too.
pub const CHECKS: [(&str, Check); 6] = [
    ("alea-random, every combination of features", features),
    ("alea-random, the oldest Rust", oldest_rust),
    ("alea-random, bare metal: four architectures", bare::build),
    ("alea-random, bare metal: in QEMU", bare::run),
    ("alea-random, the package", package),
    ("alea-random, the interface", interface),
];

impl Crate {
    pub fn run(self) -> Result<ExitCode> {
        let mut tally = Tally::default();
        for (name, check) in CHECKS {
            let result = check();
            match &result {
                Ok(None) => println!("ok      {name}"),
                Ok(Some(why)) => println!("skipped {name}: {why}"),
                Err(error) => println!("FAILED  {name}\n{error:#}\n"),
            }
            if !matches!(result, Ok(Some(_))) {
                tally.count(result.is_ok());
            }
        }
        Ok(tally.conclude())
    }
}

fn manifest() -> Result<toml::Table> {
    let path = paths::source(FOLDER).join("Cargo.toml");
    Ok(fs::read_to_string(path)?.parse()?)
}

/// What the manifest says of the package: a text.
fn said(manifest: &toml::Table, key: &str) -> Result<String> {
    let value = manifest.get("package").and_then(|package| package.get(key)?.as_str());
    Ok(value.with_context(|| format!("{FOLDER}/Cargo.toml has no `{key}`"))?.to_owned())
}

/// Without an operating system, and without a warning.
fn features() -> Result<Option<String>> {
    let manifest = manifest()?;
    let table = manifest.get("features").and_then(|f| f.as_table()).context("no features")?;
    let names: Vec<&String> = table.keys().filter(|name| *name != "default").collect();
    for set in 0..1u32 << names.len() {
        let chosen = names.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        let chosen = chosen.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(",");
        let mut cargo = process::cargo();
        cargo.args(["check", "--quiet", "--package", PACKAGE, "--target", TARGET]);
        cargo.args(["--no-default-features", "--features", &chosen, "--target-dir", TARGET_DIR]);
        cargo.env("RUSTFLAGS", "-D warnings");
        process::run(&process::show(&cargo), &mut cargo)?;
    }
    Ok(None)
}

/// The Rust that the manifest promises, which rustup fetches in half a minute where it is not there yet.
fn oldest_rust() -> Result<Option<String>> {
    let version = said(&manifest()?, "rust-version")?;
    if process::which("rustup").is_none() {
        return Ok(Some("no rustup".to_owned()));
    }
    let mut install = Command::new("timeout");
    install.args(["300", "rustup", "toolchain", "install", &version, "--profile", "minimal"]);
    if process::run(&format!("installing Rust {version}"), &mut install).is_err() {
        return Ok(Some(format!("Rust {version} cannot be installed")));
    }
    let mut check = Command::new("rustup");
    check.args(["run", &version, "cargo", "check", "--quiet", "--package", PACKAGE]);
    check.args(["--all-features", "--locked", "--target-dir", TARGET_DIR]);
    check.current_dir(paths::root());
    // What the cargo that runs this has set for its children.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        check.env_remove(name);
    }
    process::run(&process::show(&check), &mut check)?;
    Ok(None)
}

/// What would be published: its texts, the links between them, and that it compiles by itself.
fn package() -> Result<Option<String>> {
    let mut list = process::cargo();
    list.args(["package", "--quiet", "--allow-dirty", "--list", "--package", PACKAGE]);
    let listed = process::output(&mut list)?;
    let files: BTreeSet<&str> = listed.lines().collect();
    for text in TEXTS {
        ensure!(files.contains(text), "{text} is not in the package");
        let content = fs::read_to_string(paths::source(FOLDER).join(text))?;
        if let Some(link) = links(&content).find(|link| !files.contains(link)) {
            bail!("{text} links to {link}, which is not in the package");
        }
    }
    let version = said(&manifest()?, "version")?;
    let changes = fs::read_to_string(paths::source(FOLDER).join("CHANGELOG.md"))?;
    ensure!(
        changes.lines().any(|line| line.starts_with(&format!("## [{version}]"))),
        "CHANGELOG.md does not speak of version {version}"
    );
    let mut publish = process::cargo();
    publish.args(["publish", "--dry-run", "--allow-dirty", "--package", PACKAGE]);
    publish.args(["--target-dir", TARGET_DIR]);
    match process::run(&process::show(&publish), &mut publish) {
        Err(error) if OFFLINE.iter().any(|words| format!("{error:#}").contains(words)) => {
            Ok(Some("its texts and links are right; the registry cannot be reached".to_owned()))
        }
        result => result.map(|()| None),
    }
}

/// The links of a Markdown text to other files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://"))
}

/// Nothing was taken away or changed since the commit that gave the package its version: who does that gives it the next.
fn interface() -> Result<Option<String>> {
    setup::ensure(&[Need::SemverChecks])?;
    let mut log = Command::new("git");
    log.args(["log", "-1", "--format=%H", "-G^version = ", "--", &format!("{FOLDER}/Cargo.toml")]);
    let baseline = process::output(log.current_dir(paths::root()))?;
    let baseline = baseline.trim();
    if baseline.is_empty() {
        return Ok(Some("the commit that gave the package its version is not here".to_owned()));
    }
    let before = tree_of(baseline)?;
    let mut check = Command::new(tools::SEMVER_CHECKS.program());
    check.args(["semver-checks", "--package", PACKAGE, "--all-features"]);
    check.arg("--baseline-root").arg(before.path()).current_dir(paths::root());
    process::run(&process::show(&check), &mut check)?;
    Ok(None)
}

/// The tree of a commit: what cargo-semver-checks clones itself may have no links with absolute targets.
fn tree_of(commit: &str) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("tree.tar");
    let mut git = Command::new("git");
    git.args(["archive", "--output"]).arg(&archive).arg(commit).current_dir(paths::root());
    process::run(&process::show(&git), &mut git)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.path()).arg("-xf").arg(&archive);
    process::run(&process::show(&tar), &mut tar)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_others_are_not() {
        let text = "[a](a.md) [b](https://b.example/) [c](c/d.md#part) [e](#here)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["a.md", "c/d.md"]);
    }
}
