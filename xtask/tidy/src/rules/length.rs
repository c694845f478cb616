//! Lengths: lines of a function, files of a folder. (Lines of a file: `text`.)

use std::collections::BTreeMap;

use crate::data::Rules;
use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::{File, Tree};

pub fn check(tree: &Tree, rules: &Rules, faults: &mut Faults) {
    let mut folders = BTreeMap::<&str, usize>::new();
    for file in &tree.files {
        let folder = file.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let most = rules.limits.folder_files;
    for (folder, files) in folders.into_iter().filter(|(_, files)| *files > most) {
        let what = format!("{folder}: {files} files, more than {most}");
        faults.of("large-folder", folder, what);
    }
    let most = rules.limits.function_lines;
    for file in tree.rust() {
        for function in functions(file).filter(|function| function.lines > most) {
            let Function { name, line, lines } = function;
            let what = format!("{}:{line}: {name} has {lines} lines, more than {most}", file.name);
            faults.of("long-function", format!("{} {name}", file.name), what);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// The functions that have a body, those in others too.
fn functions(file: &File) -> impl Iterator<Item = Function<'_>> {
    let lines: Vec<&str> = file.code.lines().collect();
    let heads: Vec<usize> = (0..lines.len()).filter(|&at| has_word(lines[at], "fn")).collect();
    heads.into_iter().filter_map(move |at| {
        let line = lines[at];
        let after = line
            .match_indices("fn ")
            .find(|(at, _)| !line[..*at].ends_with(char::is_alphanumeric))?
            .0
            + 3;
        let name = line[after..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        let end = at + body_end(&lines[at..], after)?;
        (!name.is_empty()).then_some(Function { name, line: at + 1, lines: end - at + 1 })
    })
}

/// The index of the line in which the body ends that begins behind column `from` of the first line; nothing for a
/// function without one.
fn body_end(lines: &[&str], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut brackets = 0usize;
    for (number, line) in lines.iter().enumerate() {
        let skipped = if number == 0 { from } else { 0 };
        for c in line[skipped..].chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                ';' if depth == 0 && brackets == 0 => return None,
                '{' => depth += 1,
                '}' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(number);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let text = "trait T { fn a(&self) -> [u8; 2]; }\nfn b(x: fn() -> u8) -> [u8; 2] {\n    if x { y }\n}\n\
                    fn c() { \"}\"; }\n";
        let tree = Tree::of(&[("a.rs", text)]);
        let found: Vec<Function> = functions(&tree.files[0]).collect();
        assert_eq!(
            found,
            [Function { name: "b", line: 2, lines: 3 }, Function { name: "c", line: 5, lines: 1 }]
        );
    }

    #[test]
    fn long_functions_and_large_folders() {
        let rules = Rules::parse("[limits]\nfunction_lines = 3\nfolder_files = 1\n").unwrap();
        let tree =
            Tree::of(&[("a/x.rs", "fn long() {\n\n\n}\nfn short() {\n\n}\n"), ("a/y.md", "")]);
        let mut faults = Faults::default();
        check(&tree, &rules, &mut faults);
        assert_eq!(
            faults.all(),
            [
                "a: 2 files, more than 1 (large-folder)",
                "a/x.rs:1: long has 4 lines, more than 3 (long-function)",
            ]
        );
    }
}
