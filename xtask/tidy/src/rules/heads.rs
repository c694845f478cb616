//! The head of a kernel file that shares something (a static, a lock) or is `unsafe` says what the file owns, what it must
//! never do, and which locks it has: the words *owns*, *never* and *locks* stand in its `//!` lines.

use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::{File, Tree};

const WORDS: [&str; 3] = ["owns", "never", "locks"];
const LOCKS: [&str; 4] = ["SpinLock", "Mutex", "OwnerCell", "ArcSlot"];

pub fn check(tree: &Tree, faults: &mut Faults) {
    for file in tree.rust().filter(|file| file.name.starts_with("kernel/src/") && shares(file)) {
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
        let mut faults = Faults::default();
        check(
            &Tree::of(&[("kernel/src/x.rs", text), ("xtask/y.rs", "static X: u8 = 0;")]),
            &mut faults,
        );
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
    fn the_rest_needs_none() {
        assert!(faults("//! X.\nuse crate::sync::Mutex;\nfn f(x: &'static u8) {}\n").is_empty());
    }
}
