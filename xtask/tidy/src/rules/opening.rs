//! Rust files: each opens with `//!`, `unsafe` stands in its places, nothing is unfinished or ignored.

use crate::data::Rules;
use crate::faults::Faults;
use crate::scan::has_word;
use crate::tree::Tree;

/// What stands in no finished source.
const BANNED: [&str; 4] = ["#[ignore", "todo!(", "unimplemented!(", "dbg!("];

pub fn check(tree: &Tree, rules: &Rules, faults: &mut Faults) {
    for file in tree.rust() {
        let name = &file.name;
        if !file.text.starts_with("//!") {
            faults.add(format!("{name}:1: does not open with //!"));
        }
        let may_be_unsafe = rules.unsafe_below.iter().any(|place| name.starts_with(place.as_str()));
        for (number, line) in (1..).zip(file.code.lines()) {
            if has_word(line, "unsafe") && !may_be_unsafe {
                faults.add(format!("{name}:{number}: unsafe outside its places"));
            }
            for banned in BANNED.into_iter().filter(|banned| line.contains(banned)) {
                faults.add(format!("{name}:{number}: {banned}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let rules = Rules::parse("unsafe_below = [\"kernel/src/arch/\"]\n").unwrap();
        let mut faults = Faults::default();
        check(&Tree::of(&[(name, text)]), &rules, &mut faults);
        faults.all()
    }

    #[test]
    fn files_open_with_what_they_are() {
        assert!(faults("a.rs", "//! What it is.\n\nfn main() {}\n").is_empty());
        assert_eq!(faults("a.rs", "fn main() {}\n"), ["a.rs:1: does not open with //!"]);
    }

    #[test]
    fn unsafe_has_its_places() {
        let text = "//! X.\nfn f() { unsafe { g() } }\n";
        assert_eq!(
            faults("kernel/src/fs/x.rs", text),
            ["kernel/src/fs/x.rs:2: unsafe outside its places"]
        );
        assert!(faults("kernel/src/arch/x.rs", text).is_empty());
        let innocent =
            "//! unsafe\n#![forbid(unsafe_code)]\nconst X: &str = \"unsafe\"; // unsafe\n";
        assert!(faults("a.rs", innocent).is_empty());
    }

    #[test]
    fn unfinished_work() {
        assert_eq!(faults("a.rs", "//! X.\nfn f() { todo!() }\n"), ["a.rs:2: todo!("]);
        assert_eq!(faults("a.rs", "//! X.\n#[ignore = \"slow\"]\nfn f() {}\n").len(), 1);
    }
}
