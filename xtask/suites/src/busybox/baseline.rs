//! What Linux gives for each test (`tests/busybox/*.tsv`), and the comparison with it.
//!
//! One line a test in the order of the run: result, name, applet, separated by tabs. Names repeat (some
//! tests run twice), so runs are compared as sequences. Differences that are known stand in
//! `tests/busybox/known.toml`, each with a reason; one that has gone away is a failure too.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Form;
use super::fetch::Release;
use super::image::SLOW;
use super::transcript::{Kind, Test};
use xtask_host::paths;

/// A test and its right result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub name: String,
    pub applet: String,
}

/// The right results of one suite, in the order of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    pub entries: Vec<Entry>,
}

/// A test whose result is not the right one.
#[derive(Clone, Debug)]
pub struct Difference {
    pub name: String,
    pub applet: String,
    /// Nothing for a test that Linux does not have.
    pub want: Option<Kind>,
    /// Where it stands in the run; nothing for a test that gave no result.
    pub test: Option<usize>,
}

/// The file that holds the baseline of a release: the light and the full form share one.
pub fn file(release: Release, form: Form) -> PathBuf {
    let ending = if form == Form::Ash { "-ash" } else { "" };
    paths::source(&format!("tests/busybox/{}{ending}.tsv", release.name()))
}

impl Baseline {
    /// Reads all of a file; it is empty if there is none.
    pub fn load(release: Release, form: Form) -> Result<Self> {
        let file = file(release, form);
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&file)?;
        Self::parse(&text).with_context(|| paths::shown(&file))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[kind, name, applet] = fields.as_slice() else { bail!("cannot read {line:?}") };
            let kind = Kind::parse(kind).with_context(|| format!("cannot read {line:?}"))?;
            entries.push(Entry { kind, name: name.to_owned(), applet: applet.to_owned() });
        }
        Ok(Self { entries })
    }

    /// The text of the file; `about` says how it was made.
    pub fn text(&self, about: &str) -> String {
        let line = |entry: &Entry| format!("{}\t{}\t{}\n", entry.kind, entry.name, entry.applet);
        let lines: String = self.entries.iter().map(line).collect();
        format!("# {about}\n{lines}")
    }

    /// Only what a run of `form` gives, of all applets or of those named.
    pub fn part(&self, form: Form, applets: &[String]) -> Self {
        let kept = |entry: &&Entry| form != Form::Light || !SLOW.contains(&entry.name.as_str());
        let entries: Vec<Entry> = self.entries.iter().filter(kept).cloned().collect();
        if applets.is_empty() {
            return Self { entries };
        }
        let mut part = Vec::new();
        for applet in applets {
            // A whole run tests `busybox` twice; by name it is tested once.
            let first = entries.iter().skip_while(|entry| entry.applet != *applet);
            part.extend(first.take_while(|entry| entry.applet == *applet).cloned());
        }
        Self { entries: part }
    }

    /// The results of a run, as they are.
    pub fn of(tests: &[Test]) -> Self {
        let entry = |test: &Test| Entry {
            kind: test.kind,
            name: test.name.clone(),
            applet: test.applet.clone().unwrap_or_default(),
        };
        Self { entries: tests.iter().map(entry).collect() }
    }

    /// The results of a new run of `form`. What chance decides stays as it was, and a light run keeps
    /// what is known of the slow tests.
    pub fn refreshed(&self, form: Form, tests: &[Test], known: &Known) -> Self {
        let mut new = Self::of(tests);
        for entry in new.entries.iter_mut().filter(|entry| known.is_chance(&entry.name)) {
            let before = self.entries.iter().find(|old| old.name == entry.name);
            entry.kind = before.map_or(entry.kind, |old| old.kind);
        }
        let slow = |entry: &&Entry| SLOW.contains(&entry.name.as_str());
        let old = self.entries.iter();
        if form == Form::Light {
            let before = old.clone().take_while(|entry| !slow(entry)).last();
            let same = |entry: &Entry| before.is_some_and(|before| before.name == entry.name);
            let at = new.entries.iter().rposition(same).map_or(0, |at| at + 1);
            new.entries.splice(at..at, old.filter(slow).cloned());
        }
        new
    }

    /// The same when only `applets` were run; all others stay as they are.
    pub fn refreshed_in(
        &self,
        applets: &[String],
        form: Form,
        tests: &[Test],
        known: &Known,
    ) -> Self {
        let mut whole = self.clone();
        for applet in applets {
            let old = self.part(Form::Full, std::slice::from_ref(applet));
            let of_applet = |test: &&Test| test.applet.as_ref() == Some(applet);
            let tests: Vec<Test> = tests.iter().filter(of_applet).cloned().collect();
            let new = old.refreshed(form, &tests, known);
            let at = whole.entries.iter().position(|entry| entry.applet == *applet).unwrap_or(0);
            whole.entries.splice(at..at + old.entries.len(), new.entries);
        }
        whole
    }

    /// Aligns a run with the baseline: the tests whose results differ, in order. Tests that were found
    /// are given the applet that the baseline knows.
    pub fn compare(&self, tests: &mut [Test]) -> Vec<Difference> {
        let want: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let got: Vec<String> = tests.iter().map(|test| test.name.clone()).collect();
        let got: Vec<&str> = got.iter().map(String::as_str).collect();
        let mut differences = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &want, &got) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                for i in 0..len {
                    let (entry, at) = (&self.entries[old_index + i], new_index + i);
                    tests[at].applet = Some(entry.applet.clone());
                    if tests[at].kind != entry.kind {
                        differences.push(entry.difference(Some(at)));
                    }
                }
                continue;
            }
            differences.extend(self.entries[op.old_range()].iter().map(|e| e.difference(None)));
            differences.extend(op.new_range().map(|at| Difference {
                name: tests[at].name.clone(),
                applet: tests[at].applet.clone().unwrap_or_default(),
                want: None,
                test: Some(at),
            }));
        }
        differences
    }
}

impl Entry {
    fn difference(&self, test: Option<usize>) -> Difference {
        let (name, applet) = (self.name.clone(), self.applet.clone());
        Difference { name, applet, want: Some(self.kind), test }
    }
}

/// The differences that are known, of one release.
#[derive(Debug, Default)]
pub struct Known {
    entries: Vec<KnownDifference>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDifference {
    /// Nothing: all releases.
    release: Option<String>,
    /// A test's name; in both suites names are unique enough.
    name: String,
    reason: String,
    /// The result is a matter of chance, on Linux too: either is right.
    #[serde(default)]
    chance: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFile {
    #[serde(default)]
    difference: Vec<KnownDifference>,
}

impl Known {
    /// Reads `tests/busybox/known.toml`.
    pub fn load(release: Release) -> Result<Self> {
        let file = paths::source("tests/busybox/known.toml");
        let text = fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
        Self::parse(&text, release.name()).with_context(|| paths::shown(&file))
    }

    fn parse(text: &str, release: &str) -> Result<Self> {
        let file: KnownFile = toml::from_str(text)?;
        if let Some(one) = file.difference.iter().find(|one| one.reason.trim().is_empty()) {
            bail!("{:?} has no reason", one.name);
        }
        let ours = file
            .difference
            .into_iter()
            .filter(|one| one.release.as_ref().is_none_or(|name| name == release));
        Ok(Self { entries: ours.collect() })
    }

    /// Why a test may differ.
    pub fn reason(&self, name: &str) -> Option<&str> {
        let known = self.entries.iter().find(|known| known.name == name)?;
        Some(&known.reason)
    }

    /// Whether chance decides how a test ends.
    pub fn is_chance(&self, name: &str) -> bool {
        self.entries.iter().any(|known| known.chance && known.name == name)
    }

    /// Known differences that were expected in a run against `baseline`, and did not show.
    pub fn gone(&self, baseline: &Baseline, differences: &[Difference]) -> Vec<String> {
        let differ: BTreeSet<&str> = differences.iter().map(|one| one.name.as_str()).collect();
        let ran = |name: &str| baseline.entries.iter().any(|entry| entry.name == name);
        let sure = self.entries.iter().filter(|known| !known.chance);
        let names = sure.map(|known| known.name.as_str());
        names.filter(|name| ran(name) && !differ.contains(name)).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TEXT: &str = "# how\nPASS\tbusybox\tbusybox\nPASS\tawk == \tawk\nFAIL\tb\tbc\n\
        PASS\tbc parsing of numbers\tbc\nPASS\tbusybox\tbusybox\n";

    fn tests(list: &[(Kind, &str)]) -> Vec<Test> {
        let test = |&(kind, name): &(Kind, &str)| Test {
            kind,
            name: name.into(),
            applet: None,
            took: Duration::ZERO,
            details: Vec::new(),
            hung: None,
        };
        list.iter().map(test).collect()
    }

    #[test]
    fn files_are_read_and_written_alike() {
        let baseline = Baseline::parse(TEXT).unwrap();
        assert_eq!(baseline.entries[1].name, "awk == ");
        assert_eq!(baseline.text("how"), TEXT);
        assert!(Baseline::parse("PASS\tx\n").is_err() && Baseline::parse("OK\tx\ty\n").is_err());
    }

    #[test]
    fn forms_and_applets_are_parts() {
        let baseline = Baseline::parse(TEXT).unwrap();
        assert_eq!(baseline.part(Form::Full, &[]), baseline);
        assert_eq!(baseline.part(Form::Light, &[]).entries.len(), 4);
        let names = ["busybox".to_owned(), "bc".to_owned()];
        let part = baseline.part(Form::Light, &names);
        assert_eq!(
            part.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
            ["busybox", "b"]
        );
    }

    #[test]
    fn a_light_run_keeps_the_slow_tests() {
        let baseline = Baseline::parse(TEXT).unwrap();
        let mut light = tests(&[
            (Kind::Pass, "busybox"),
            (Kind::Pass, "awk == "),
            (Kind::Pass, "b"),
            (Kind::Pass, "busybox"),
        ]);
        assert_eq!(baseline.part(Form::Light, &[]).compare(&mut light).len(), 1);
        let new = baseline.refreshed(Form::Light, &light, &Known::default());
        assert_eq!(new.text("how"), TEXT.replace("FAIL", "PASS"));
    }

    #[test]
    fn a_run_of_one_applet_leaves_the_others() {
        let baseline = Baseline::parse(TEXT).unwrap();
        let mut bc = tests(&[(Kind::Pass, "b"), (Kind::Pass, "c")]);
        bc.iter_mut().for_each(|test| test.applet = Some("bc".into()));
        let new = baseline.refreshed_in(&["bc".into()], Form::Full, &bc, &Known::default());
        let names: Vec<_> = new.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["busybox", "awk == ", "b", "c", "busybox"]);
    }

    #[test]
    fn every_difference_is_found() {
        let baseline = Baseline::parse(TEXT).unwrap().part(Form::Light, &[]);
        let mut equal = tests(&[
            (Kind::Pass, "busybox"),
            (Kind::Pass, "awk == "),
            (Kind::Fail, "b"),
            (Kind::Pass, "busybox"),
        ]);
        assert!(baseline.compare(&mut equal).is_empty());
        assert_eq!(equal[1].applet.as_deref(), Some("awk"));
        let mut other = tests(&[
            (Kind::Fail, "busybox"),
            (Kind::Pass, "new"),
            (Kind::Fail, "b"),
            (Kind::Pass, "busybox"),
        ]);
        let found = baseline.compare(&mut other);
        let found: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.want, one.test)).collect();
        assert_eq!(found[0], ("busybox", Some(Kind::Pass), Some(0)));
        assert!(found.contains(&("awk == ", Some(Kind::Pass), None)), "{found:?}");
        assert!(found.contains(&("new", None, Some(1))) && found.len() == 3, "{found:?}");
    }

    #[test]
    fn known_differences_have_reasons_and_must_show() {
        let text = "[[difference]]\nrelease = \"bookworm\"\nname = \"b\"\nreason = \"why\"\n";
        let known = Known::parse(text, "bookworm").unwrap();
        assert_eq!(known.reason("b"), Some("why"));
        assert_eq!(known.reason("c"), None);
        let baseline = Baseline::parse(TEXT).unwrap();
        assert_eq!(known.gone(&baseline, &[]), ["b"]);
        assert!(known.gone(&baseline, &[baseline.entries[2].difference(None)]).is_empty());
        assert!(known.gone(&Baseline::default(), &[]).is_empty());
        assert!(Known::parse(text, "trixie").unwrap().reason("b").is_none());
        assert!(Known::parse(&text.replace("why", " "), "bookworm").is_err());
        let chance = text.replace("release = \"bookworm\"", "chance = true");
        let chance = Known::parse(&chance, "trixie").unwrap();
        assert!(chance.reason("b").is_some() && chance.gone(&baseline, &[]).is_empty());
        let passed = tests(&[(Kind::Pass, "b")]);
        assert_eq!(baseline.refreshed(Form::Full, &passed, &chance).entries[0].kind, Kind::Fail);
        assert!(Known::parse("", "bookworm").unwrap().reason("b").is_none());
    }
}
