//! What the runner in the guest (`userland/abi-run.c`) prints, cut into programs, each with what its first run printed; and
//! where two texts differ.

use similar::{ChangeTag, TextDiff};

/// How the runner's lines begin that tell what the kernel still holds of a program that has ended.
pub const LEFT: &str = "--- left: ";

/// The runner's line before it runs a program once more, to see whether what it leaves grows.
const AGAIN: &str = "--- again";

/// How the lines begin that end a run.
const ENDS: [&str; 3] = ["--- exit ", "--- signal ", "--- timeout"];

/// Cuts the serial output into programs; also says whether the runner came to its end. The last
/// section is unfinished if it did not.
pub fn sections(output: &str) -> (Vec<(String, String)>, bool) {
    let mut sections: Vec<Section> = Vec::new();
    let mut whole = false;
    for line in output.lines().map(str::trim_end) {
        if let Some(name) = line.strip_prefix("=== ") {
            sections.push(Section::new(name));
            continue;
        }
        // Of no program at all when the last one took the kernel down before.
        let between = sections.last().is_none_or(|section| section.state == Reading::Nothing);
        if between && line.starts_with("abi-end ") {
            whole = true;
            break;
        }
        if let Some(section) = sections.last_mut() {
            section.take(line);
        }
    }
    (sections.into_iter().map(Section::finish).collect(), whole)
}

/// What is being read of a program.
#[derive(PartialEq)]
enum Reading {
    First,
    Again,
    /// It has ended.
    Nothing,
}

/// What a program printed.
struct Section {
    name: String,
    state: Reading,
    /// Its first run.
    first: String,
    /// A later run, as far as it has come.
    again: String,
    /// What Linux has no line for, so that it fails: what is left, and where a later run was not as the first.
    more: String,
}

impl Section {
    fn new(name: &str) -> Self {
        let (first, again, more) = Default::default();
        Self { name: name.to_owned(), state: Reading::First, first, again, more }
    }

    fn take(&mut self, line: &str) {
        let ends = ENDS.iter().any(|end| line.starts_with(end));
        match self.state {
            Reading::Nothing if line == AGAIN => self.state = Reading::Again,
            Reading::Nothing if line.starts_with(LEFT) => push_line(&mut self.more, line),
            // The kernel's own.
            Reading::Nothing => {}
            Reading::First => {
                push_line(&mut self.first, line);
                if ends {
                    self.state = Reading::Nothing;
                }
            }
            Reading::Again => {
                push_line(&mut self.again, line);
                if ends {
                    self.compare();
                }
            }
        }
    }

    /// A later run has come to its end: notes where it was not as the first.
    fn compare(&mut self) {
        for (tag, line) in hunks(&self.first, &self.again).into_iter().flatten() {
            let what = if tag == ChangeTag::Delete { "lacks" } else { "prints" };
            push_line(&mut self.more, &format!("{AGAIN} {what}: {line}"));
        }
        self.again.clear();
        self.state = Reading::Nothing;
    }

    fn finish(mut self) -> (String, String) {
        if self.state == Reading::Again {
            push_line(&mut self.again, "(no end)");
            self.compare();
        }
        (self.name, self.first + &self.more)
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The places where two texts differ: lines only in `want` (deleted) and only in `got` (inserted).
pub fn hunks(want: &str, got: &str) -> Vec<Vec<(ChangeTag, String)>> {
    let diff = TextDiff::from_lines(want, got);
    let mut hunks = Vec::new();
    let mut hunk = Vec::new();
    for change in diff.iter_all_changes() {
        if change.tag() == ChangeTag::Equal {
            if !hunk.is_empty() {
                hunks.push(std::mem::take(&mut hunk));
            }
        } else {
            hunk.push((change.tag(), change.value().trim_end_matches('\n').to_owned()));
        }
    }
    if !hunk.is_empty() {
        hunks.push(hunk);
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_into_programs() {
        let text =
            "log\n=== a\none \n=x\n--- exit 0\nlog\n=== b\ntwo\n--- signal 11\nabi-end 2\nlog\n";
        let (all, whole) = sections(text);
        assert!(whole);
        assert_eq!(all[0], ("a".into(), "one\n=x\n--- exit 0\n".into()));
        assert_eq!(all[1], ("b".into(), "two\n--- signal 11\n".into()));
        let left = "--- left: tasks +1\n";
        let (all, whole) = sections(&format!("=== a\n--- exit 0\nlog\n{left}abi-end 1\n"));
        assert!(whole);
        assert_eq!(all, [("a".into(), format!("--- exit 0\n{left}"))]);
        assert_eq!(sections("log\nabi-end 0\n"), (Vec::new(), true));
        let (all, whole) = sections("=== a\none\nKernel panic\n");
        assert!(!whole);
        assert_eq!(all, [("a".into(), "one\nKernel panic\n".into())]);
    }

    #[test]
    fn each_run_of_a_program_must_be_as_the_first() {
        let ran = |again: &str| {
            let text = format!("=== a\none\n--- exit 0\nlog\n--- again\n{again}");
            let (mut all, whole) = sections(&text);
            assert_eq!(all.len(), 1);
            (all.remove(0).1, whole)
        };
        let first = "one\n--- exit 0\n";
        let same = format!("{first}log\n--- again\n{first}abi-end 1\n");
        assert_eq!(ran(&same), (first.into(), true));
        for (again, more) in [
            ("two\n--- exit 0\n", "--- again lacks: one\n--- again prints: two\n"),
            ("--- exit 0\n", "--- again lacks: one\n"),
            ("one\n--- exit 1\n", "--- again lacks: --- exit 0\n--- again prints: --- exit 1\n"),
            ("one\n--- timeout\n", "--- again lacks: --- exit 0\n--- again prints: --- timeout\n"),
        ] {
            let left = "--- left: tasks +1\n";
            let (got, whole) = ran(&format!("{again}log\n{left}abi-end 1\n"));
            assert!(whole);
            assert_eq!(got, format!("{first}{more}{left}"));
            let (got, whole) = ran(&format!("{again}log\n--- again\n{first}abi-end 1\n"));
            assert!(whole, "a third run that is good makes up for none");
            assert_eq!(got, format!("{first}{more}"));
        }
        let (got, whole) = ran("one\nKernel panic\n");
        assert!(!whole && got.contains("--- again prints: Kernel panic\n"), "{got}");
    }
}
