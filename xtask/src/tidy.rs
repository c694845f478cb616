//! `cargo xtask tidy`: the house rules that neither rustfmt nor clippy knows.
//!
//! The rules that change with the tree (long files, places for `unsafe`, forbidden words) are data
//! in `xtask/tidy.txt`. Comments and strings are not code: [`code_only`] blanks them first.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{paths, process, syscalls};

/// Lines that a source file may have.
const LONGEST: usize = 600;

/// Bytes that a binary file in git may have.
const LARGEST_BINARY: usize = 4096;

/// The data file, which may name what it forbids.
const RULES: &str = "xtask/tidy.txt";

/// Checks the house rules: file openings, white space, lengths, places for unsafe code.
#[derive(Args)]
pub struct Tidy {}

impl Tidy {
    pub fn run(self) -> Result<ExitCode> {
        check(paths::root())?;
        println!("tidy: ok");
        Ok(ExitCode::SUCCESS)
    }
}

/// Checks every file that git knows or would add; the error lists all that is wrong.
pub fn check(root: &Path) -> Result<()> {
    let rules = Rules::parse(&fs::read_to_string(root.join(RULES)).context(RULES)?)?;
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let names = process::output(&mut git)?;
    let mut faults = Vec::new();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let path = root.join(name);
        // A link is its target's name, and a deleted file is not there any more.
        if fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
            let bytes = fs::read(&path).with_context(|| name.to_owned())?;
            rules.check_file(name, &bytes, &mut faults);
        }
    }
    if let Err(error) = syscalls::check(root) {
        faults.push(format!("{error:#}"));
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{} faults:\n{}", faults.len(), faults.join("\n"))
}

/// The rules of the data file.
#[derive(Default)]
struct Rules {
    long: Vec<String>,
    unsafe_below: Vec<String>,
    forbidden: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let mut rules = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("long", path)) => rules.long.push(path.to_owned()),
                Some(("unsafe", path)) => rules.unsafe_below.push(path.to_owned()),
                Some(("forbid", word)) => rules.forbidden.push(word.to_owned()),
                _ => bail!("{RULES}: cannot read the line {line:?}"),
            }
        }
        Ok(rules)
    }

    fn check_file(&self, name: &str, bytes: &[u8], faults: &mut Vec<String>) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            if bytes.len() > LARGEST_BINARY {
                faults.push(format!("{name}: a binary file of {} bytes", bytes.len()));
            }
            return;
        };
        self.check_text(name, text, faults);
        if name.ends_with(".rs") {
            self.check_rust(name, text, faults);
        }
    }

    fn check_text(&self, name: &str, text: &str, faults: &mut Vec<String>) {
        for (number, line) in (1..).zip(text.lines()) {
            if line.ends_with([' ', '\t', '\r']) {
                faults.push(format!("{name}:{number}: white space at the end of the line"));
            }
            if name == RULES {
                continue;
            }
            for word in self.forbidden.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{name}:{number}: the word {word}"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            faults.push(format!("{name}: no newline at its end"));
        }
        let lines = text.lines().count();
        let source = [".rs", ".c", ".h", ".sh"].iter().any(|ending| name.ends_with(ending));
        if lines > LONGEST && source && !self.long.iter().any(|long| long == name) {
            faults.push(format!("{name}: {lines} lines, more than {LONGEST}"));
        }
    }

    fn check_rust(&self, name: &str, text: &str, faults: &mut Vec<String>) {
        if !text.starts_with("//!") {
            faults.push(format!("{name}:1: does not open with //!"));
        }
        let may_be_unsafe = self.unsafe_below.iter().any(|place| name.starts_with(place.as_str()));
        for (number, line) in (1..).zip(code_only(text).lines()) {
            if has_word(line, "unsafe") && !may_be_unsafe {
                faults.push(format!("{name}:{number}: unsafe outside its places"));
            }
            for banned in ["#[ignore", "todo!(", "unimplemented!(", "dbg!("] {
                if line.contains(banned) {
                    faults.push(format!("{name}:{number}: {banned}"));
                }
            }
        }
    }
}

/// True if `word` stands in `line` by itself, not as part of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

/// Rust source with comments, strings and character literals blanked; lines stay lines.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skipped = literal_or_comment(rest, code.chars().next_back());
        if skipped == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            let (blanked, after) = rest.split_at(skipped);
            code.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    code
}

/// Length of the comment, string or character literal that `text` starts with, or 0.
fn literal_or_comment(text: &str, before: Option<char>) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if bytes[0] == b'r' && !in_word {
        let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
        if bytes.get(1 + hashes) == Some(&b'"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let from = 2 + hashes;
            return text[from..].find(&close).map_or(text.len(), |at| from + at + close.len());
        }
    }
    match bytes[0] {
        b'"' => quoted(text, '"'),
        // 'x' and '\n' are literals; 'x without a second quote is a lifetime.
        b'\'' => {
            let mut chars = text[1..].chars();
            match (chars.next(), chars.next()) {
                (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// Length of the quoted text that `text` starts with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the block comment, with those nested in it, that `text` starts with.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let rules = "long tables.rs\nunsafe kernel/src/arch/\nforbid LATER\n";
        let rules = Rules::parse(rules).unwrap();
        let mut faults = Vec::new();
        rules.check_file(name, text.as_bytes(), &mut faults);
        faults
    }

    #[test]
    fn a_clean_file_has_no_faults() {
        assert!(faults("a.rs", "//! What it is.\n\nfn main() {}\n").is_empty());
        assert!(faults("empty.txt", "").is_empty());
    }

    #[test]
    fn white_space_newlines_and_openings() {
        assert_eq!(faults("a.md", "x \ny\n"), ["a.md:1: white space at the end of the line"]);
        assert_eq!(faults("a.md", "x"), ["a.md: no newline at its end"]);
        assert_eq!(faults("a.rs", "fn main() {}\n"), ["a.rs:1: does not open with //!"]);
    }

    #[test]
    fn long_files_need_an_entry() {
        let long = format!("//! Long.\n{}", "\n".repeat(LONGEST));
        assert_eq!(faults("a.rs", &long).len(), 1);
        assert!(faults("tables.rs", &long).is_empty());
        assert!(faults("Cargo.lock", &long).is_empty());
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
    fn unfinished_work_and_forbidden_words() {
        assert_eq!(faults("a.rs", "//! X.\nfn f() { todo!() }\n"), ["a.rs:2: todo!("]);
        assert_eq!(faults("a.rs", "//! X.\n#[ignore = \"slow\"]\nfn f() {}\n").len(), 1);
        assert_eq!(faults("a.md", "do it LATER\nCALCULATER\n"), ["a.md:1: the word LATER"]);
    }

    #[test]
    fn binaries_are_small() {
        let rules = Rules::default();
        let mut found = Vec::new();
        rules.check_file("a.bin", &[0xff; LARGEST_BINARY], &mut found);
        assert!(found.is_empty());
        rules.check_file("a.bin", &[0xff; LARGEST_BINARY + 1], &mut found);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn only_code_is_left() {
        assert_eq!(code_only("a // b\nc"), "a     \nc");
        assert_eq!(code_only("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code_only(r##"x(r#"a " b"#) y"##), "x(          ) y");
        assert_eq!(code_only(r#"x("c\"d") y"#), "x(      ) y");
        assert_eq!(code_only(r"f::<'a>('\'', 'b') z"), "f::<'a>(    ,    ) z");
    }

    #[test]
    fn rules_that_cannot_be_read_are_an_error() {
        assert!(Rules::parse("allow everything\n").is_err());
    }
}
