//! Every file: no white space at an end, no forbidden word, no large binary, no long source.

use crate::data::{self, Rules};
use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::{File, Tree};

pub fn check(tree: &Tree, rules: &Rules, faults: &mut Faults) {
    for file in &tree.files {
        match file.binary {
            None => check_text(file, rules, faults),
            Some(len) if len > rules.limits.binary_bytes => {
                faults.add(format!("{}: a binary file of {len} bytes", file.name));
            }
            Some(_) => {}
        }
    }
}

fn check_text(file: &File, rules: &Rules, faults: &mut Faults) {
    let File { name, text, .. } = file;
    for (number, line) in (1..).zip(text.lines()) {
        if line.ends_with([' ', '\t', '\r']) {
            faults.add(format!("{name}:{number}: white space at the end of the line"));
        }
        if name == data::FILE {
            continue;
        }
        for word in rules.forbid.iter().filter(|word| has_word(line, word)) {
            faults.add(format!("{name}:{number}: the word {word}"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        faults.add(format!("{name}: no newline at its end"));
    }
    let (lines, most) = (text.lines().count(), rules.limits.file_lines);
    let source = [".rs", ".c", ".h", ".sh"].iter().any(|ending| name.ends_with(ending));
    if lines > most && source {
        faults.of("long-file", name, format!("{name}: {lines} lines, more than {most}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let rules = Rules::parse("forbid = [\"LATER\"]\n").unwrap();
        let mut faults = Faults::default();
        check(&Tree::of(&[(name, text)]), &rules, &mut faults);
        faults.all()
    }

    #[test]
    fn white_space_and_newlines() {
        assert!(faults("empty.txt", "").is_empty());
        assert_eq!(faults("a.md", "x \ny\n"), ["a.md:1: white space at the end of the line"]);
        assert_eq!(faults("a.md", "x"), ["a.md: no newline at its end"]);
    }

    #[test]
    fn long_source_is_a_fault_that_may_be_excepted() {
        let long = "\n".repeat(501);
        assert_eq!(faults("a.rs", &long), ["a.rs: 501 lines, more than 500 (long-file)"]);
        assert!(faults("Cargo.lock", &long).is_empty());
        assert!(faults("a.rs", &"\n".repeat(500)).is_empty());
    }

    #[test]
    fn forbidden_words() {
        assert_eq!(faults("a.md", "do it LATER\nCALCULATER\n"), ["a.md:1: the word LATER"]);
    }

    #[test]
    fn binaries_are_small() {
        let mut tree = Tree::default();
        let file = |len| File {
            name: "a.bin".into(),
            text: String::new(),
            code: String::new(),
            binary: Some(len),
        };
        tree.files = vec![file(4096), file(4097)];
        let mut faults = Faults::default();
        check(&tree, &Rules::default(), &mut faults);
        assert_eq!(faults.all(), ["a.bin: a binary file of 4097 bytes"]);
    }
}
