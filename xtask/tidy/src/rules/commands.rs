//! Commands of `cargo xtask` that pages and comments name are there, and docs/using.md has a row for each.

use crate::faults::Faults;
use crate::tree::Tree;

/// The page with the list of all commands.
const PAGE: &str = "docs/using.md";
/// Whatever follows is the name of a command, unless it is in capitals or an option.
const CALL: &str = "cargo xtask ";

pub fn check(tree: &Tree, faults: &mut Faults) {
    let known = |name: &str| xtask::COMMANDS.iter().any(|xtask::Command(known, ..)| *known == name);
    for file in tree.files.iter().filter(|file| !file.name.starts_with("xtask/tidy/src/")) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for name in named(line).filter(|name| !known(name)) {
                faults.add(format!("{}:{number}: there is no {CALL}{name}", file.name));
            }
        }
    }
    let Some(page) = tree.file(PAGE) else { return };
    for xtask::Command(name, ..) in xtask::COMMANDS {
        let row = |line: &str| line.starts_with("| `") && named(line).next() == Some(name);
        if !page.text.lines().any(row) {
            faults.add(format!("{PAGE}: no row of {CALL}{name}"));
        }
    }
}

/// Names of commands in a line.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split(CALL).skip(1).filter_map(|rest| {
        let name = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()?;
        (!name.is_empty() && !name.starts_with('-')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut faults = Faults::default();
        check(&Tree::of(&[(name, text)]), &mut faults);
        faults.all()
    }

    #[test]
    fn commands_that_are_named_are_there() {
        assert!(
            faults("a.md", "`cargo xtask run --root x`, cargo xtask COMMAND, cargo xtask --help\n")
                .is_empty()
        );
        assert_eq!(
            faults("a.rs", "//! A.\n// see `cargo xtask random-statistics`\n"),
            ["a.rs:2: there is no cargo xtask random-statistics"]
        );
    }

    #[test]
    fn the_page_has_a_row_for_each() {
        let all: String = xtask::COMMANDS
            .iter()
            .map(|xtask::Command(name, ..)| format!("| `{CALL}{name} --all` | x |\n"))
            .collect();
        assert!(faults(PAGE, &all).is_empty());
        let row = format!("| `{CALL}soak --all` | x |\n");
        assert_eq!(
            faults(PAGE, &all.replace(&row, "")),
            ["docs/using.md: no row of cargo xtask soak"]
        );
    }
}
