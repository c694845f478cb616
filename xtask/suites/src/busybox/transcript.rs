//! Reads what the guest's runner (`userland/suite.c`) prints, line by line as it comes.
//!
//! Pure: no clock and no input of its own. Lines that are not the runner's (firmware, kernel) are ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How a test ended, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    Pass,
    Fail,
    Skipped,
    Untested,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Pass, Self::Fail, Self::Skipped, Self::Untested];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Skipped => "SKIPPED",
            Self::Untested => "UNTESTED",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One test's result.
#[derive(Clone, Debug)]
pub struct Test {
    pub kind: Kind,
    pub name: String,
    /// Known when the guest said it, or from the baseline later.
    pub applet: Option<String>,
    /// Since the result before it.
    pub took: Duration,
    /// What the test printed, and its diff; only of tests that failed.
    pub details: Vec<String>,
    /// After how many seconds which processes were killed, if it hung.
    pub hung: Option<String>,
}

/// One run of all tests.
#[derive(Clone, Debug)]
pub struct Pass {
    pub tests: Vec<Test>,
    pub free_before_kib: u64,
    /// What `suite-end` says; none of it if the guest did not come so far.
    pub end: Option<End>,
    began: Instant,
    last: Instant,
    applet: Option<String>,
    hung: Option<String>,
    /// The test that details are about.
    about: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Exit status of upstream's runner.
    pub status: i32,
    pub free_kib: u64,
    pub took: Duration,
}

impl Pass {
    fn new(free_before_kib: u64, now: Instant) -> Self {
        Self {
            tests: Vec::new(),
            free_before_kib,
            end: None,
            began: now,
            last: now,
            applet: None,
            hung: None,
            about: 0,
        }
    }

    /// The number of tests that ended in each way.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::from(Kind::ALL.map(|kind| (kind, 0)));
        for test in &self.tests {
            *counts.entry(test.kind).or_default() += 1;
        }
        counts
    }
}

/// Everything that was told so far.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    pub passes: Vec<Pass>,
    pub done: bool,
    /// Lines of the runner that report trouble of its own.
    pub complaints: Vec<String>,
}

impl Transcript {
    /// Takes one line, without its end, that came at `now`.
    pub fn line(&mut self, line: &str, now: Instant) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "suite-begin" => {
                let free = rest.split(' ').nth(1).and_then(|free| free.parse().ok()).unwrap_or(0);
                self.passes.push(Pass::new(free, now));
            }
            "suite-done" => self.done = true,
            "suite:" => self.complaints.push(rest.to_owned()),
            _ => {
                if let Some(pass) = self.passes.last_mut() {
                    pass.line(word, rest, now);
                }
            }
        }
    }
}

impl Pass {
    fn line(&mut self, word: &str, rest: &str, now: Instant) {
        match word {
            "suite-applet" => self.applet = Some(rest.to_owned()),
            "suite-hung" => {
                let said = self.hung.take().map_or_else(String::new, |before| before + "; ");
                self.hung = Some(said + rest);
            }
            "suite-result" => {
                let Some((kind, name)) = rest.split_once(": ") else { return };
                let Some(kind) = Kind::parse(kind) else { return };
                self.about = self.tests.len();
                self.tests.push(Test {
                    kind,
                    name: name.to_owned(),
                    applet: self.applet.clone(),
                    took: now.duration_since(self.last),
                    details: Vec::new(),
                    hung: self.hung.take(),
                });
                self.last = now;
            }
            "suite-detail" => self.detail(rest),
            "suite-end" => {
                let mut numbers = rest.split(' ').skip(1);
                let status = numbers.next().and_then(|status| status.parse().ok());
                let free = numbers.next().and_then(|free| free.parse().ok());
                if let (Some(status), Some(free_kib)) = (status, free) {
                    let took = self.last.duration_since(self.began);
                    self.end = Some(End { status, free_kib, took });
                }
            }
            _ => {}
        }
    }

    /// A detail belongs to the last result. `=== FILE.fail` begins what the shell's tests say of one.
    fn detail(&mut self, text: &str) {
        if let Some(file) = text.strip_prefix("=== ").and_then(|file| file.strip_suffix(".fail")) {
            let same = |test: &Test| test.name.replace('/', "-") == file;
            self.about = self.tests.iter().position(same).unwrap_or(self.about);
        } else if let Some(test) = self.tests.get_mut(self.about) {
            test.details.push(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Transcript {
        let mut transcript = Transcript::default();
        for line in text.lines() {
            transcript.line(line, Instant::now());
        }
        transcript
    }

    #[test]
    fn results_details_and_memory_are_read() {
        let read = read(
            "SeaBIOS\nsuite-result PASS: too early\nsuite-begin 1 1000\n\
             suite-result PASS: awk if operator == \nnoise\nsuite-hung 60 12(sh)\nsuite-hung 30 11(sh)\n\
             suite-result FAIL: b: c\nsuite-detail -x\nsuite-detail \nsuite-end 1 1 990\nsuite-done\n",
        );
        assert!(read.done);
        let pass = &read.passes[0];
        assert_eq!(pass.tests.len(), 2);
        assert_eq!(pass.tests[0].name, "awk if operator == ");
        assert_eq!((pass.tests[1].kind, pass.tests[1].name.as_str()), (Kind::Fail, "b: c"));
        assert_eq!(pass.tests[1].details, ["-x", ""]);
        assert_eq!(pass.tests[1].hung.as_deref(), Some("60 12(sh); 30 11(sh)"));
        assert_eq!((pass.free_before_kib, pass.end.unwrap().free_kib), (1000, 990));
        assert_eq!(pass.counts()[&Kind::Fail], 1);
    }

    #[test]
    fn the_shells_tests_name_the_file_that_details_are_about() {
        let read = read(
            "suite-begin 1 1\nsuite-result FAIL: ash-x/a.tests\nsuite-result PASS: ash-x/b.tests\n\
             suite-detail === ash-x-a.tests.fail\nsuite-detail -x\n",
        );
        assert_eq!(read.passes[0].tests[0].details, ["-x"]);
        assert!(read.passes[0].tests[1].details.is_empty());
    }

    #[test]
    fn a_guest_that_ends_early_leaves_what_it_had() {
        let read = read("suite-begin 1 1000\nsuite-result PASS: a\nKernel panic\n");
        assert!(!read.done && read.passes[0].end.is_none());
        assert_eq!(read.passes[0].tests.len(), 1);
    }
}
