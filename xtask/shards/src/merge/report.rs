//! What is told of all parts: as text, as JSON and as JUnit XML.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::set::Set;
use crate::junit;
use crate::results::{Case, FORMAT, Results, Verdict, put};
use xtask_host::paths;
use xtask_host::table::Table;
use xtask_host::tally::Tally;

/// Lines of a message that the text shows; the other two forms have all.
const SHOWN: usize = 12;

pub struct Report {
    sets: Vec<Set>,
}

/// How many cases ended how.
#[derive(Default)]
struct Counts {
    passed: u64,
    known: u64,
    skipped: u64,
    failed: u64,
}

impl Counts {
    fn of<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            *match case.verdict {
                Verdict::Passed => &mut counts.passed,
                Verdict::Known => &mut counts.known,
                Verdict::Skipped => &mut counts.skipped,
                Verdict::Failed => &mut counts.failed,
            } += 1;
        }
        counts
    }
}

impl Report {
    pub fn of(sets: Vec<Set>) -> Self {
        Self { sets }
    }

    fn parts(&self) -> impl Iterator<Item = &Results> {
        self.sets.iter().flat_map(|set| &set.parts)
    }

    fn cases(&self) -> impl Iterator<Item = (&Results, &Case)> {
        self.parts().flat_map(|part| part.cases.iter().map(move |case| (part, case)))
    }

    /// The lines that do the missing parts.
    fn missing(&self) -> impl Iterator<Item = String> {
        self.sets.iter().flat_map(|set| {
            set.missing.iter().map(|shard| format!("{} --shard {shard}", set.command))
        })
    }

    /// What is good, what is skipped left out, and what is not; a missing part is one failure.
    pub fn tally(&self) -> Tally {
        let counts = Counts::of(self.cases().map(|(_, case)| case));
        let missing = self.missing().count() as u64;
        Tally { passed: counts.passed + counts.known, failed: counts.failed + missing }
    }

    /// For people: what failed comes last, where it is seen.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for set in &self.sets {
            write_set(&mut text, set);
        }
        for line in self.missing() {
            let _ = writeln!(text, "MISSING {line}");
        }
        for (part, case) in self.cases().filter(|(_, case)| case.verdict == Verdict::Failed) {
            write_failure(&mut text, part, case);
        }
        text
    }

    /// Writes `report.txt`, `report.json` and `report.xml`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| paths::shown(folder))?;
        put(&folder.join("report.txt"), &self.text())?;
        let json = serde_json::to_string_pretty(&self.json())? + "\n";
        put(&folder.join("report.json"), &json)?;
        let missing = |line| ("a part is missing".to_owned(), line);
        let problems: Vec<(String, String)> = self.missing().map(missing).collect();
        put(&folder.join("report.xml"), &junit::of_all(self.parts(), &problems)?)
    }

    fn json(&self) -> serde_json::Value {
        let counts = Counts::of(self.cases().map(|(_, case)| case));
        let failures = self.cases().filter(|(_, case)| case.verdict == Verdict::Failed);
        let failures = failures.map(|(part, case)| {
            json!({
                "command": part.command, "shard": part.shard, "host": part.host, "name": case.name,
                "unit": case.unit, "message": case.message, "repeat": case.repeat,
            })
        });
        json!({
            "format": FORMAT,
            "passed": counts.passed, "known": counts.known,
            "skipped": counts.skipped, "failed": counts.failed,
            "missing": self.missing().collect::<Vec<_>>(),
            "failures": failures.collect::<Vec<_>>(),
            "sets": self.sets,
        })
    }
}

fn write_set(text: &mut String, set: &Set) {
    let cases = || set.parts.iter().flat_map(|part| &part.cases);
    let Counts { passed, known, skipped, failed } = Counts::of(cases());
    let units: usize = set.parts.iter().map(|part| part.units.len()).sum();
    let missing = match set.missing.len() {
        0 => String::new(),
        some => format!(", {some} missing"),
    };
    let _ = writeln!(
        text,
        "{}: {} parts{missing}, {units} pieces, {} cases: {passed} passed, {known} known, {skipped} skipped, {failed} failed",
        set.command,
        set.parts.len(),
        cases().count(),
    );
    for part in &set.parts {
        let bad = part.cases.iter().filter(|case| case.verdict == Verdict::Failed).count();
        let _ = writeln!(
            text,
            "  {} on {}: {} pieces in {:.1} s, {bad} failed",
            part.shard,
            part.host,
            part.units.len(),
            part.seconds
        );
    }
    let mut columns: Vec<&str> = Vec::new();
    for name in cases().flat_map(|case| case.figures.keys()) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return;
    }
    let mut table = Table::new(&[&[set.parts[0].name()], columns.as_slice()].concat());
    for case in cases().filter(|case| !case.figures.is_empty()) {
        let cell = |name: &&str| case.figures.get(*name).map_or("-".into(), |value| number(*value));
        table.row([case.name.clone()].into_iter().chain(columns.iter().map(cell)).collect());
    }
    for line in table.render().lines() {
        let _ = writeln!(text, "    {line}");
    }
}

/// A figure with at least three digits.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

fn write_failure(text: &mut String, part: &Results, case: &Case) {
    let of = if case.unit == case.name { String::new() } else { format!("{}: ", case.unit) };
    let mut lines = case.message.lines();
    let first = lines.next().unwrap_or("no word of why");
    let _ =
        writeln!(text, "FAILED  {of}{} (part {}, {}): {first}", case.name, part.shard, part.host);
    let rest: Vec<&str> = lines.collect();
    for line in rest.iter().take(SHOWN) {
        let _ = writeln!(text, "        | {line}");
    }
    if rest.len() > SHOWN {
        let _ = writeln!(text, "        | ... and {} lines more", rest.len() - SHOWN);
    }
    let _ = writeln!(text, "        repeat: {}", case.repeat);
}
