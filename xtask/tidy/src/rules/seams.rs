//! Seams: each slot of the kernel through which a lower floor calls a higher one, a `Once` of a trait object or of a
//! function, stands in the table of `kernel/src/seams.rs`, and each row of that table is true.

use std::collections::BTreeSet;

use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::{File, Tree};

/// The table: rows `//! | SLOT | declared in | filled through | by | when |`.
const TABLE: &str = "kernel/src/seams.rs";
const BELOW: &str = "kernel/src/";

pub fn check(tree: &Tree, faults: &mut Faults) {
    let Some(table) = tree.file(TABLE) else {
        return faults.add(format!("{TABLE}: there is none"));
    };
    let mut rows = BTreeSet::new();
    for (number, line) in (1..).zip(table.text.lines()) {
        let Some(cells) = line.strip_prefix("//! | `") else { continue };
        let cells: Vec<&str> = cells.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [slot, declared, through, by, _when, ..] = cells[..] else {
            faults.add(format!("{TABLE}:{number}: a row has five cells"));
            continue;
        };
        if let Err(why) = is_true(tree, slot, declared, through, by) {
            faults.add(format!("{TABLE}:{number}: {slot}: {why}"));
        }
        rows.insert((format!("{BELOW}{declared}"), slot.to_owned()));
    }
    let aliases = aliases(tree);
    for file in tree.rust().filter(|file| file.name.starts_with(BELOW)) {
        let aliases = aliases_in(&aliases, file);
        for slot in slots(file, &aliases) {
            if !rows.contains(&(file.name.clone(), slot.to_owned())) {
                faults.add(format!("{}: the slot {slot} is missing in {TABLE}", file.name));
            }
        }
    }
}

/// Whether a row fits the source: the slot is there, and its filler calls the function that fills it.
fn is_true(tree: &Tree, slot: &str, declared: &str, through: &str, by: &str) -> Result<(), String> {
    let file = |name: &str| {
        tree.file(&format!("{BELOW}{name}")).ok_or(format!("there is no {BELOW}{name}"))
    };
    let declares = |line: &str| line.contains("static ") && has_word(line, slot);
    if !file(declared)?.code.lines().any(declares) {
        return Err(format!("{declared} has no such static"));
    }
    if !has_word(&file(declared)?.code, &format!("fn {through}")) {
        return Err(format!("{declared} has no function {through}"));
    }
    if !has_word(&file(by)?.code, through) {
        return Err(format!("{by} does not call {through}"));
    }
    Ok(())
}

/// The names that a file can see: its own, and those of others that are public.
fn aliases_in(all: &BTreeSet<(Option<String>, String)>, file: &File) -> BTreeSet<String> {
    let seen = |of: &Option<String>| of.as_ref().is_none_or(|of| *of == file.name);
    all.iter().filter(|(of, _)| seen(of)).map(|(_, name)| name.clone()).collect()
}

/// Names of types that are functions, or slots of such, each with its file if it is seen there only.
fn aliases(tree: &Tree) -> BTreeSet<(Option<String>, String)> {
    let mut names = BTreeSet::new();
    for file in tree.rust().filter(|file| file.name.starts_with(BELOW)) {
        for line in file.code.lines() {
            let Some((before, rest)) = line.split_once("type ") else { continue };
            let Some((name, kind)) = rest.split_once('=') else { continue };
            if kind.contains("fn(") {
                let own = (!before.contains("pub")).then(|| file.name.clone());
                names.insert((own, name.trim().to_owned()));
            }
        }
    }
    names
}

/// The statics of a file that are slots for what a higher floor provides.
fn slots<'a>(file: &'a File, aliases: &BTreeSet<String>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in file
        .code
        .lines()
        .filter(|line| line.trim_start().starts_with("static ") || line.contains(" static "))
    {
        let Some((_, rest)) = line.split_once("static ") else { continue };
        let Some((name, kind)) = rest.split_once(':') else { continue };
        let kind = kind.split(" = ").next().unwrap_or(kind);
        let is_once = kind.contains("Once<") || aliases.iter().any(|alias| kind.trim() == alias);
        let is_call = kind.contains("dyn ") && kind.contains('&')
            || kind.contains("fn(")
            || aliases.iter().any(|alias| has_word(kind, alias));
        if is_once && is_call {
            found.push(name.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(row: &str) -> Vec<String> {
        let table = format!("//! Seams.\n//! | slot | declared in |\n{row}");
        let tree = Tree::of(&[
            (TABLE, &table),
            (
                "kernel/src/low.rs",
                "static UP: Once<&'static dyn Up> = Once::new();\nstatic N: Once<u8> = x;\npub fn register(up: U) {}",
            ),
            ("kernel/src/high.rs", "fn init() { low::register(&ME) }"),
            ("kernel/src/other.rs", ""),
        ]);
        let mut faults = Faults::default();
        check(&tree, &mut faults);
        faults.all()
    }

    #[test]
    fn each_slot_has_a_row() {
        assert_eq!(
            faults(""),
            ["kernel/src/low.rs: the slot UP is missing in kernel/src/seams.rs"]
        );
        assert!(faults("//! | `UP` | `low.rs` | `register` | `high.rs` | at boot |\n").is_empty());
    }

    #[test]
    fn each_row_is_true() {
        let wrong = faults("//! | `UP` | `low.rs` | `register` | `other.rs` | at boot |\n");
        assert_eq!(wrong, ["kernel/src/seams.rs:3: UP: other.rs does not call register"]);
        let wrong = faults("//! | `DOWN` | `low.rs` | `register` | `high.rs` | at boot |\n");
        assert_eq!(wrong[0], "kernel/src/seams.rs:3: DOWN: low.rs has no such static");
    }

    #[test]
    fn functions_behind_a_name_are_slots_too() {
        let text = "type Slot = Once<fn()>;\nstatic A: Slot = x;\npub type See = fn(u8);\nstatic B: Once<See> = x;\n\
                    static C: crate::sync::Once<fn(&mut dyn W)> = x;\nstatic D: SpinLock<Vec<fn()>> = x;\n";
        let tree = Tree::of(&[("kernel/src/a.rs", text)]);
        let aliases = aliases_in(&aliases(&tree), &tree.files[0]);
        assert_eq!(slots(&tree.files[0], &aliases), ["A", "B", "C"]);
    }
}
