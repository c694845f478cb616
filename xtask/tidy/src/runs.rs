//! What runs on Alea and what does not: `docs/runs.toml`, and the table that README makes of it.
//!
//! `cargo xtask runs` tries the rows. Tidy sees that README shows them, that the tests which they name are there, and that a row
//! which wants missing system calls is looked at again when the kernel has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::faults::Faults;
use crate::tree::Tree;
use crate::{marked, syscalls};

/// The data, from the root of the repository.
pub const FILE: &str = "docs/runs.toml";
const PAGE: &str = "README.md";
const BEGIN: &str =
    "<!-- runs: `cargo xtask tidy --write` makes the table from docs/runs.toml -->\n";
const END: &str = "<!-- end of runs -->";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    row: Vec<Row>,
}

/// One thing that runs or does not; the head of the file says what its fields are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub group: String,
    pub name: String,
    pub runs: bool,
    #[serde(rename = "try")]
    pub script: Option<String>,
    pub boot: Option<String>,
    pub until: Option<String>,
    #[serde(default)]
    pub packages: Vec<String>,
    /// `FILE: TEST`, `FILE`, or `cargo xtask COMMAND`.
    pub shown: Option<String>,
    #[serde(default)]
    pub calls: Vec<String>,
    /// Why Linux, in the same machine and root, does not do it either.
    pub linux: Option<String>,
}

impl Row {
    /// Whether anything shows that the row is true.
    fn is_shown(&self) -> bool {
        self.script.is_some()
            || self.shown.is_some()
            || self.boot.is_some() && self.until.is_some()
            || !self.runs && !self.calls.is_empty()
    }
}

pub fn load(root: &Path) -> Result<Vec<Row>> {
    parse(&fs::read_to_string(root.join(FILE)).context(FILE)?)
}

/// The rows of that text, each of which something shows.
pub fn parse(text: &str) -> Result<Vec<Row>> {
    let rows = toml::from_str::<Data>(text).context(FILE)?.row;
    for row in &rows {
        ensure!(row.is_shown(), "{FILE}: {}: nothing shows it", row.name);
    }
    Ok(rows)
}

pub fn check(tree: &Tree, faults: &mut Faults) {
    let Some(data) = tree.file(FILE) else { return };
    let rows = match parse(&data.text) {
        Ok(rows) => rows,
        Err(error) => return faults.add(format!("{error:#}")),
    };
    let page = tree.file(PAGE).map_or("", |page| &page.text);
    if with_table(page, &rows).as_deref() != Some(page) {
        faults.add(format!("{PAGE}: does not show what {FILE} says: tidy --write"));
    }
    let calls = match syscalls::names(tree) {
        Ok(calls) => calls,
        Err(error) => return faults.add(format!("{error:#}")),
    };
    for row in &rows {
        if let Some(shown) = &row.shown
            && !is_there(tree, shown)
        {
            faults.add(format!("{FILE}: {}: there is no {shown}", row.name));
        }
        if !row.runs && !row.calls.is_empty() && row.calls.iter().all(|call| calls.contains(call)) {
            faults.add(format!(
                "{FILE}: {} is said not to run, and the kernel has {} now: try `cargo xtask runs`, and change the row",
                row.name,
                row.calls.join(", ")
            ));
        }
    }
}

/// Whether a test or a command that shows something exists.
fn is_there(tree: &Tree, shown: &str) -> bool {
    if let Some(name) = shown.strip_prefix("cargo xtask ") {
        return xtask::COMMANDS.iter().any(|xtask::Command(known, ..)| *known == name);
    }
    match shown.split_once(": ") {
        Some((file, test)) => {
            tree.file(file).is_some_and(|file| file.code.contains(&format!("#[test]\nfn {test}()")))
        }
        None => tree.file(shown).is_some(),
    }
}

/// The page with the table made anew; nothing if it has no marks.
pub fn with_table(page: &str, rows: &[Row]) -> Option<String> {
    marked::replace(page, BEGIN, END, &table(rows))
}

/// A line for each group, in the order of the file.
fn table(rows: &[Row]) -> String {
    let mut text = String::from("\n| | runs | does not |\n|---|---|---|\n");
    let mut done = BTreeSet::new();
    for Row { group, .. } in rows {
        if !done.insert(group) {
            continue;
        }
        let names = |runs| {
            let of = rows.iter().filter(|row| row.group == *group && row.runs == runs);
            of.map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        text.push_str(&format!("| {group} | {} | {} |\n", names(true), names(false)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "[[row]]\ngroup = \"tools\"\nname = \"git\"\nruns = true\nshown = \"tests/a.rs: git_works\"\n\
        [[row]]\ngroup = \"tools\"\nname = \"strace\"\nruns = false\ncalls = [\"ptrace\"]\n";
    const TEST: &str = "//! A.\n#[test]\nfn git_works() {}\n";

    fn faults(rows: &str, test: &str, syscalls: &str) -> Vec<String> {
        let page = with_table(&format!("{BEGIN}{END}"), &parse(ROWS).unwrap()).unwrap();
        let table = format!("x\nsyscalls! {{\n{syscalls}}}\n");
        let tree = Tree::of(&[
            (FILE, rows),
            (PAGE, &page),
            ("tests/a.rs", test),
            ("kernel/src/syscall/table.rs", &table),
        ]);
        let mut faults = Faults::default();
        check(&tree, &mut faults);
        faults.all()
    }

    #[test]
    fn the_page_has_a_line_for_each_group() {
        assert!(table(&parse(ROWS).unwrap()).contains("\n| tools | git | strace |\n"));
        assert!(faults(ROWS, TEST, "").is_empty());
        assert_eq!(
            faults(&ROWS.replace("git\"", "hg\""), TEST, ""),
            ["README.md: does not show what docs/runs.toml says: tidy --write"]
        );
    }

    #[test]
    fn tests_that_show_something_are_there() {
        assert_eq!(
            faults(ROWS, &TEST.replace("git", "hg"), ""),
            ["docs/runs.toml: git: there is no tests/a.rs: git_works"]
        );
        let row = ROWS.replace("tests/a.rs: git_works", "cargo xtask gitt");
        assert_eq!(faults(&row, TEST, ""), ["docs/runs.toml: git: there is no cargo xtask gitt"]);
        assert!(parse(&ROWS.replace("calls = [\"ptrace\"]", "")).is_err());
    }

    #[test]
    fn a_call_that_came_calls_for_another_look() {
        let told = faults(ROWS, TEST, "    101 ptrace => task::ptrace, Full;\n");
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("strace is said not to run"), "{told:?}");
    }
}
