//! `cargo xtask syscalls`: writes `docs/abi.md` from the kernel's system-call table and Linux's.
//!
//! The kernel's is read as text, row by row: `NUMBER NAME => HANDLER, STATUS;`. It stays the only list of what is there
//! that is kept by hand; what is not there is the rest of Linux's, `xtask/tidy/linux-calls.txt`. `tidy` fails when the page does not
//! follow them, when a number has another name than on Linux, and when alea-trace does not know a call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::tree::Tree;
use xtask_host::paths;

const TABLE: &str = "kernel/src/syscall/table.rs";
const PAGE: &str = "docs/abi.md";
/// The calls that alea-trace shows.
const TRACED: &str = "userland/tools/trace_calls.h";
/// A line for each call of Linux 6.12: its number and its name.
const LINUX: &str = include_str!("../linux-calls.txt");

/// Writes docs/abi.md from the system-call table.
#[derive(Args)]
pub struct Syscalls {}

impl Syscalls {
    pub fn run(self) -> Result<ExitCode> {
        let page = page(&rows(paths::root())?, &linux(LINUX)?)?;
        let file = paths::source(PAGE);
        fs::write(&file, page).with_context(|| file.display().to_string())?;
        println!("{}", paths::shown(&file));
        Ok(ExitCode::SUCCESS)
    }
}

/// Fails if the page is not what [`Syscalls`] would write, or if alea-trace knows other calls. A table without rows needs no page yet.
pub fn check(root: &Path) -> Result<()> {
    let rows = rows(root)?;
    let written = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    if !rows.is_empty() && written != page(&rows, &linux(LINUX)?)? {
        bail!("{PAGE} does not follow {TABLE}: run `cargo xtask syscalls`");
    }
    if rows.is_empty() {
        return Ok(());
    }
    traced_alike(&rows, &fs::read_to_string(root.join(TRACED)).context(TRACED)?)
}

/// Fails if `traced`, lines of `[NUMBER] = { "NAME", ...`, has a call too many, too few or of another name.
fn traced_alike(rows: &[Row], traced: &str) -> Result<()> {
    let call = |line: &str| {
        let (number, rest) = line.trim().strip_prefix('[')?.split_once("] = { \"")?;
        Some((number.parse().ok()?, rest.split_once('"')?.0.to_owned()))
    };
    let traced: BTreeSet<(u32, String)> = traced.lines().filter_map(call).collect();
    let there: BTreeSet<_> = rows.iter().map(|row| (row.number, row.name.clone())).collect();
    if let Some((number, name)) = there.symmetric_difference(&traced).next() {
        bail!("{TRACED} and {TABLE} differ: {number} {name}");
    }
    Ok(())
}

/// The names of all calls that the kernel has.
pub fn names(tree: &Tree) -> Result<Vec<String>> {
    let table = tree.file(TABLE).map_or("", |file| &file.text);
    Ok(parse(table)?.into_iter().map(|row| row.name).collect())
}

/// One system call.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: u32,
    name: String,
    /// What is missing, unless nothing is.
    missing: Option<String>,
}

fn rows(root: &Path) -> Result<Vec<Row>> {
    let file = root.join(TABLE);
    if !file.exists() {
        return Ok(Vec::new());
    }
    parse(&fs::read_to_string(file).context(TABLE)?)
}

/// The rows of the macro call `syscalls! { ... }`.
fn parse(source: &str) -> Result<Vec<Row>> {
    let Some((_, table)) = source.split_once("\nsyscalls! {") else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    let mut row = String::new();
    for line in table.lines() {
        // `//` begins a comment unless it stands in a status text: no text here has one.
        let line = line.split("//").next().unwrap_or("").trim();
        if line.starts_with('}') {
            break;
        }
        row.push_str(line);
        row.push(' ');
        // A `;` within a status text does not end the row, because the quote is still open.
        while let Some(end) = end_of_row(&row) {
            let rest = row.split_off(end + 1);
            row.pop();
            rows.push(parse_row(row.trim())?);
            row = rest;
        }
    }
    if !row.trim().is_empty() {
        bail!("{TABLE}: the row {:?} does not end", row.trim());
    }
    rows.sort_by_key(|row| row.number);
    Ok(rows)
}

/// Where the first `;` outside quotes is.
fn end_of_row(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == ';' && !quoted).then_some(at)
    })
}

fn parse_row(row: &str) -> Result<Row> {
    let read = || {
        let (left, right) = row.split_once("=>")?;
        let mut words = left.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let name = words.next()?.to_owned();
        let status = right.split_once(',')?.1.trim();
        let missing = match status {
            "Full" => None,
            _ => {
                let text = status.strip_prefix("Partial(")?.strip_suffix(')')?.trim();
                Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
            }
        };
        Some(Row { number, name, missing })
    };
    read().with_context(|| format!("{TABLE}: cannot read the row {row:?}"))
}

/// Numbers and names of the calls in `list`.
fn linux(list: &str) -> Result<BTreeMap<u32, &str>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let calls = lines.map(|line| {
        let (number, name) = line.split_once(' ').with_context(|| line.to_owned())?;
        Ok((number.parse()?, name))
    });
    calls.collect()
}

fn page(rows: &[Row], linux: &BTreeMap<u32, &str>) -> Result<String> {
    for row in rows {
        if linux.get(&row.number) != Some(&row.name.as_str()) {
            bail!("{TABLE}: {} is not Linux's {}", row.name, row.number);
        }
    }
    let there: BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    let missing: Vec<_> = linux.iter().filter(|(number, _)| !there.contains(number)).collect();
    let full = rows.iter().filter(|row| row.missing.is_none()).count();
    let mut page = format!(
        "# System calls\n\n\
         Written by `cargo xtask syscalls` from `{TABLE}`; not to be edited.\n\n\
         {} calls: {full} as on Linux 6.12, {} with something missing. Every other number returns\n\
         `ENOSYS` and is counted in `/proc/alea/syscalls`; {} of them are calls of Linux 6.12: [not there](#not-there).\n\n\
         | number | call | missing |\n|--:|---|---|\n",
        rows.len(),
        rows.len() - full,
        missing.len(),
    );
    for row in rows {
        let missing = row.missing.as_deref().unwrap_or("").replace('|', "\\|");
        let line = format!("| {} | {} | {missing} |", row.number, row.name);
        page.push_str(&line.replace("  |", " |"));
        page.push('\n');
    }
    page.push_str(
        "\n## Not there\n\nThe other calls of Linux 6.12 on x86_64. Each returns `ENOSYS`.\n\n| number | call |\n|--:|---|\n",
    );
    for (number, name) in missing {
        page.push_str(&format!("| {number} | {name} |\n"));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "macro_rules! syscalls { ($( $n:literal ),*) => {} }\n\n\
        syscalls! {\n    1 write => file::write, Full; // the one that everybody knows\n\
        // files\n    0 read => file::read, Full;\n    2 open => file::open,\n        \
        Partial(\"no O_TMPFILE; no leases\");\n}\nfn after() { x; }\n";

    #[test]
    fn rows_are_read_in_any_layout() {
        let rows = parse(SOURCE).unwrap();
        let names: Vec<_> = rows.iter().map(|row| (row.number, row.name.as_str())).collect();
        assert_eq!(names, [(0, "read"), (1, "write"), (2, "open")]);
        assert_eq!(rows[2].missing.as_deref(), Some("no O_TMPFILE; no leases"));
        assert!(parse("syscalls! {}\n").unwrap().is_empty());
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error() {
        assert!(parse("\nsyscalls! {\n 0 read => file::read;\n}\n").is_err());
        assert!(parse("\nsyscalls! {\n 0 read => file::read, Full\n}\n").is_err());
    }

    #[test]
    fn a_call_that_is_not_traced_is_an_error() {
        let rows = parse(SOURCE).unwrap();
        let traced = "\t[0] = { \"read\", \"fru\" },\n\t[1] = { \"write\", \"fbu\" },\n";
        let error = traced_alike(&rows, traced).unwrap_err().to_string();
        assert!(error.contains("2 open"), "{error}");
        traced_alike(&rows, &format!("{traced}\t[2] = {{ \"open\", \"som\" }},\n")).unwrap();
        assert!(
            traced_alike(&rows, &format!("{traced}\t[2] = {{ \"openat\", \"som\" }},\n")).is_err()
        );
    }

    #[test]
    fn the_page_says_what_is_missing() {
        let calls = linux("# Linux's\n0 read\n1 write\n2 open\n101 ptrace\n").unwrap();
        let page = page(&parse(SOURCE).unwrap(), &calls).unwrap();
        assert!(page.contains("3 calls: 2 as on Linux 6.12, 1 with something missing"), "{page}");
        assert!(page.contains("| 0 | read | |\n"), "{page}");
        assert!(page.contains("| 2 | open | no O_TMPFILE; no leases |\n"), "{page}");
        assert!(page.contains("1 of them are calls of Linux"), "{page}");
        assert!(page.ends_with("| number | call |\n|--:|---|\n| 101 | ptrace |\n"), "{page}");
    }

    #[test]
    fn a_number_has_the_name_that_linux_gives_it() {
        let rows = parse(SOURCE).unwrap();
        assert!(page(&rows, &linux("0 read\n1 write\n2 openat\n").unwrap()).is_err());
        assert!(linux("0\n").is_err());
        let calls = linux(LINUX).unwrap();
        assert_eq!((calls[&0], calls[&59], calls[&462]), ("read", "execve", "mseal"));
    }
}
