//! The list of all wipes, `tests/residue/wipes.toml`, and its comparison with the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use xtask_host::{paths, process};

/// From the repository's root.
const LIST: &str = "tests/residue/wipes.toml";
/// The changes that `cargo xtask mutants` makes: where each wipe of the entropy core is that no reading shows.
const CHANGES: &str = "kernel/random/mutants.toml";

/// A line with one of these wipes something, wherever in the kernel it is.
const MARKS: [&str; 6] =
    ["zeroize()", "zeroize_stack::<", "wipe(", "wipe_stack::<", "vzeroall", "ALEA_WIPE_FIRST "];
/// In these folders and files what has one of [`MORE_MARKS`] does, too.
const CLOSE: [&str; 7] = [
    "kernel/random/src/",
    "kernel/src/random/",
    "kernel/src/arch/x86_64/copy/",
    "kernel/src/arch/x86_64/entry/idt.rs",
    "kernel/src/machine/tpm/",
    "kernel/src/virtio/queue.rs",
    "kernel/vdso/src/",
];
const MORE_MARKS: [&str; 15] = [
    ".fill(0)",
    "= [0; KEY_LEN];",
    "= [0; WORD];",
    "mem::replace(ready",
    "at).write_volatile(0)",
    "n).write_volatile(0)",
    ".store(at, 0)",
    "write_unaligned(0)",
    "from.write(0)",
    "], 0\"",
    "], xmm0",
    "], ymm0",
    "], \\width\\()0",
    "\"xor",
    "\"pxor",
];
/// And these have such a mark by chance: a key that is moved, a comparison.
const NOT: [&str; 2] = ["{group}", "\"cmp "];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    wipe: Vec<Wipe>,
}

/// One entry of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wipe {
    pub file: String,
    /// The line, without the spaces around it.
    pub line: String,
    /// A line above it, four at most, that tells it from equal ones.
    after: Option<String>,
    /// What stands in its place when it is switched off; nothing, if it is not said.
    pub instead: Option<String>,
    /// It is an instruction: how it is switched off without changing what the code around it needs.
    pub asm: Option<Asm>,
    /// Interfaces of userland/random/residue.c, one of which leaves something behind without it.
    #[serde(default)]
    pub reading: Vec<String>,
    /// The machine's CPU for that, as QEMU names it, if it matters.
    pub cpu: Option<String>,
    /// FILE NAME of a test that fails without it.
    pub test: Option<String>,
    /// Its place in the file, from 0.
    #[serde(skip)]
    pub at: usize,
}

/// What an instruction that is switched off may change.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Asm {
    Flags,
    Rcx,
}

impl Wipe {
    /// What is told of it.
    pub fn name(&self) -> String {
        format!("{}:{}: {}", self.file, self.at + 1, self.line)
    }
}

/// All entries, each with its place; an error if the list and the sources differ.
pub fn load() -> Result<Vec<Wipe>> {
    let text = fs::read_to_string(paths::source(LIST)).context(LIST)?;
    let List { mut wipe } = toml::from_str(&text).context(LIST)?;
    let mut listed = BTreeSet::new();
    for entry in &mut wipe {
        let said = format!("{LIST}: {}: {}", entry.file, entry.line);
        let text = fs::read_to_string(paths::source(&entry.file)).context(said.clone())?;
        entry.at = place(&text, &entry.line, entry.after.as_deref()).context(said.clone())?;
        ensure!(listed.insert((entry.file.clone(), entry.at)), "{said}: twice");
        judge(entry).context(said)?;
    }
    let missing = unlisted(&listed)?;
    ensure!(missing.is_empty(), "not in {LIST}:\n{}", missing.join("\n"));
    Ok(wipe)
}

/// The number of the line, which has to be there once.
fn place(text: &str, line: &str, after: Option<&str>) -> Result<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let near =
        |at: usize| after.is_none_or(|after| lines[at.saturating_sub(4)..at].contains(&after));
    let found: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == line && near(*at)).collect();
    match found[..] {
        [at] => Ok(at),
        _ => bail!("it is there {} times", found.len()),
    }
}

/// Whether an entry says one thing of the two, and the test that it names is there.
fn judge(entry: &Wipe) -> Result<()> {
    ensure!(entry.reading.is_empty() == entry.test.is_some(), "either a reading or a test");
    let Some(test) = &entry.test else { return Ok(()) };
    let (file, name) = test.split_once(' ').context("a test is FILE NAME")?;
    let text = fs::read_to_string(paths::source(file)).with_context(|| file.to_owned())?;
    ensure!(text.contains(&format!("fn {name}()")), "{file} has no test {name}");
    let Some(file) = entry.file.strip_prefix("kernel/random/src/") else { return Ok(()) };
    let changes: toml::Table = fs::read_to_string(paths::source(CHANGES))?.parse()?;
    let changes = changes.get("change").and_then(|changes| changes.as_array());
    let is_made = |change: &toml::Value| {
        let text = |key: &str| change.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let above = entry.after.iter().all(|after| text("from").contains(after));
        let goes = text("from").contains(&entry.line) && !text("to").contains(&entry.line);
        text("file") == file && above && goes
    };
    ensure!(changes.is_some_and(|all| all.iter().any(is_made)), "{CHANGES} does not leave it out");
    Ok(())
}

/// Lines of the kernel that wipe and are not in the list.
fn unlisted(listed: &BTreeSet<(String, usize)>) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for file in tracked()? {
        let is_code = [".rs", ".s"].iter().any(|end| file.ends_with(end));
        let of_kernel = file.starts_with("kernel/") && !file.ends_with("build.rs");
        let is_test = ["tests", "benches", "examples"].iter().any(|test| {
            Path::new(&file).iter().any(|part| Path::new(part).file_stem() == Some(test.as_ref()))
        });
        if !is_code || !of_kernel || is_test {
            continue;
        }
        let text = fs::read_to_string(paths::source(&file))?;
        let lines = text.lines().enumerate().filter(|(_, line)| wipes(&file, line.trim()));
        let lines = lines.filter(|(at, _)| !listed.contains(&(file.clone(), *at)));
        missing.extend(lines.map(|(at, line)| format!("{file}:{}: {}", at + 1, line.trim())));
    }
    Ok(missing)
}

fn wipes(file: &str, line: &str) -> bool {
    let is_said = ["//", "#", ".macro", "use ", "fn ", "unsafe fn ", "pub(crate) fn "]
        .iter()
        .any(|start| line.starts_with(start));
    let has = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    let close = CLOSE.iter().any(|place| file.starts_with(place));
    !is_said && !has(&NOT) && (has(&MARKS) || close && has(&MORE_MARKS))
}

/// Files of the repository, from its root.
pub fn tracked() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(paths::root());
    let names =
        process::output(git.args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    Ok(names.lines().map(str::to_owned).filter(|file| paths::source(file).is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wipe_of_the_kernel_is_in_the_list() {
        let wipes = load().unwrap();
        let shown = wipes.iter().filter(|wipe| !wipe.reading.is_empty()).count();
        assert!(shown > 20, "a reading shows {shown} of {}", wipes.len());
    }

    #[test]
    fn a_wipe_that_is_not_listed_is_noticed() {
        let missing = unlisted(&BTreeSet::new()).unwrap();
        for wipe in ["used.zeroize();", "ALEA_WIPE_FIRST 16", "wipe(&mut secret);", "\"vzeroall\","]
        {
            assert!(missing.iter().any(|line| line.ends_with(wipe)), "{wipe}: {missing:#?}");
        }
        assert!(!wipes("kernel/src/random/user.rs", "// buffer.zeroize();"));
    }

    #[test]
    fn a_line_is_found_by_what_stands_above_it() {
        let text = "a\nwipe\nb\n\n  wipe\n";
        assert!(place(text, "wipe", None).is_err());
        assert_eq!(place(text, "wipe", Some("b")).unwrap(), 4);
        assert_eq!(place(text, "b", None).unwrap(), 2);
        assert!(place(text, "c", None).is_err());
    }
}
