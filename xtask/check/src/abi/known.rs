//! Differences from Linux that are known (`tests/abi/xfail.toml`), and what a program printed, judged.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use similar::ChangeTag;

use super::output::hunks;
use xtask_host::paths;

/// The differences that are known, by program.
#[derive(Default, Deserialize)]
pub struct Known {
    #[serde(flatten)]
    programs: BTreeMap<String, Vec<Difference>>,
}

/// Lines of Linux's output that Alea does not print (or prints otherwise), and why. No lines at all
/// stand for the whole program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    reason: String,
    #[serde(default)]
    lines: Vec<String>,
}

impl Known {
    /// Reads `tests/abi/xfail.toml`.
    pub fn load() -> Result<Self> {
        let file = paths::source("tests/abi/xfail.toml");
        let text = fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
        let known: Self = toml::from_str(&text).with_context(|| paths::shown(&file))?;
        let reasonless = |one: &Difference| one.reason.trim().is_empty();
        if let Some((name, _)) = known.programs.iter().find(|(_, list)| list.iter().any(reasonless))
        {
            bail!("{}: {name} has an entry without a reason", paths::shown(&file));
        }
        Ok(known)
    }

    /// The programs that have known differences.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    /// The number of known differences; an error shows those that are not known, or no longer there.
    pub fn judge(&self, name: &str, got: &str, want: &str) -> std::result::Result<usize, String> {
        let list = self.programs.get(name).map_or(&[][..], Vec::as_slice);
        if let Some(whole) = list.iter().find(|one| one.lines.is_empty()) {
            return if got == want {
                Err(format!("  now passes; remove it from xfail.toml ({})", whole.reason))
            } else {
                Ok(1)
            };
        }
        let mut known: Vec<&str> =
            list.iter().flat_map(|one| &one.lines).map(|line| line.as_str().trim_end()).collect();
        let total = known.len();
        let mut report = String::new();
        for hunk in hunks(want, got) {
            let before = known.len();
            let unknown = hunk.iter().any(|(tag, line)| {
                let place = known.iter().position(|known| known == line);
                match (tag, place) {
                    (ChangeTag::Delete, Some(place)) => {
                        known.remove(place);
                        false
                    }
                    (ChangeTag::Delete, None) => true,
                    _ => false,
                }
            });
            // Lines that only Alea prints are excused by a known line beside them.
            if unknown || known.len() == before {
                for (tag, line) in hunk {
                    let sign = if tag == ChangeTag::Delete { "linux" } else { "alea " };
                    report.push_str(&format!("  {sign} | {line}\n"));
                }
            }
        }
        for line in &known {
            report.push_str(&format!("  now as on Linux, remove it from xfail.toml: {line}\n"));
        }
        if report.is_empty() { Ok(total) } else { Err(report) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Known {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn differences_must_be_known_and_known_ones_must_differ() {
        let none = known("");
        assert_eq!(none.judge("p", "a\nb\n", "a\nb\n"), Ok(0));
        assert!(none.judge("p", "a\nX\n", "a\nb\n").unwrap_err().contains("linux | b"));
        assert!(none.judge("p", "", "a\n").is_err());
        assert!(none.judge("p", "a\nmore\n", "a\n").unwrap_err().contains("alea  | more"));
        let one = known("[[p]]\nreason = \"why\"\nlines = [\"b\"]\n");
        assert_eq!(one.judge("p", "a\nX\nc\n", "a\nb\nc\n"), Ok(1));
        assert!(one.judge("p", "a\nb\nc\n", "a\nb\nc\n").unwrap_err().contains("now as on Linux"));
        assert!(one.judge("p", "a\nX\nY\n", "a\nb\nc\n").is_err(), "c is not known");
        assert!(one.judge("q", "a\nX\n", "a\nb\n").is_err(), "another program");
        let whole = known("[[p]]\nreason = \"why\"\n");
        assert_eq!(whole.judge("p", "x\n", "a\n"), Ok(1));
        assert!(whole.judge("p", "a\n", "a\n").unwrap_err().contains("now passes"));
    }
}
