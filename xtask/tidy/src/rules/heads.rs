//! The head of a kernel file that shares something (a static, a lock) or is `unsafe` says what the file owns, what it must
//! never do, and which locks it has: the words *owns*, *never* and *locks* stand in its `//!` lines. In the folders that
//! `heads_below` lists every file has them, but for those that only list others (`mod.rs`).

use crate::data::Rules;
use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::{File, Tree};

const WORDS: [&str; 3] = ["owns", "never", "locks"];
const LOCKS: [&str; 4] = ["SpinLock", "Mutex", "OwnerCell", "ArcSlot"];

pub fn check(tree: &Tree, rules: &Rules, faults: &mut Faults) {
    let is_hard = |file: &File| {
        let below = rules.heads_below.iter().any(|folder| file.name.starts_with(folder));
        below && !file.name.ends_with("/mod.rs")
    };
    let wants =
        |file: &&File| file.name.starts_with("kernel/src/") && (shares(file) || is_hard(file));
    for file in tree.rust().filter(wants) {
        let lines = file.text.lines().take_while(|line| line.starts_with("//!"));
        let head = lines.collect::<Vec<_>>().join("\n").to_lowercase();
        let missing: Vec<&str> = WORDS.into_iter().filter(|word| !has_word(&head, word)).collect();
        if !missing.is_empty() {
            let what = format!("{}:1: the head does not say {}", file.name, missing.join(", "));
            faults.of("head", &*file.name, what);
        }
    }
}

/// Whether a file has a static, a lock or unsafe code.
fn shares(file: &File) -> bool {
    file.code.lines().any(|line| {
        let uses = line.trim_start().starts_with("use ");
        has_static(line)
            || has_word(line, "unsafe")
            || !uses && LOCKS.iter().any(|lock| has_word(line, lock))
    })
}

/// Whether a line declares a static; `'static` is a lifetime.
fn has_static(line: &str) -> bool {
    line.match_indices("static ").any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with(|c: char| c == '\'' || c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        faults_of(&[("kernel/src/x.rs", text), ("xtask/y.rs", "static X: u8 = 0;")])
    }

    fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut faults = Faults::default();
        let rules = Rules { heads_below: vec!["kernel/src/hard/".into()], ..Rules::default() };
        check(&Tree::of(files), &rules, &mut faults);
        faults.all()
    }

    #[test]
    fn what_is_shared_has_a_head() {
        let fault = ["kernel/src/x.rs:1: the head does not say owns, locks (head)"];
        assert_eq!(faults("//! X: never sleeps.\nstatic X: u8 = 0;\n"), fault);
        assert_eq!(faults("//! Never.\nstruct S { a: SpinLock<u8> }\n"), fault);
        assert_eq!(faults("//! Never.\nfn f() { unsafe { g() } }\n"), fault);
        assert!(
            faults("//! Owns X. Never\n//! sleeps. Locks: none.\nstatic X: u8 = 0;\n").is_empty()
        );
    }

    #[test]
    fn in_a_hard_folder_each_file_has_a_head() {
        let plain = "//! X.\nfn f() {}\n";
        let files = [("kernel/src/hard/a.rs", plain), ("kernel/src/hard/mod.rs", plain)];
        let fault = "kernel/src/hard/a.rs:1: the head does not say owns, never, locks (head)";
        assert_eq!(faults_of(&files), [fault]);
    }

    #[test]
    fn the_rest_needs_none() {
        assert!(faults("//! X.\nuse crate::sync::Mutex;\nfn f(x: &'static u8) {}\n").is_empty());
    }
}
