//! What a run of the runtimes' tests says: each difference, and a table of the units.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use super::Results;

/// Every test of one kernel with its verdict.
pub fn list(results: &Results) -> ExitCode {
    for (unit, tests) in results {
        for (test, verdict) in tests {
            println!("{verdict:8} {unit} {test}");
        }
    }
    for (unit, tests) in results {
        println!("{unit:24} {}", Counts::of(tests));
    }
    ExitCode::SUCCESS
}

/// The differences that `known` does not explain, the table, and success if there are none.
pub fn compare(linux: &Results, alea: &Results, known: &Results) -> ExitCode {
    let (mut same, mut excused, mut wrong) = (0, 0, 0);
    let none = BTreeMap::new();
    for (unit, want) in linux {
        let got = alea.get(unit).unwrap_or(&none);
        let reasons = known.get(unit).unwrap_or(&none);
        let tests: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
        for test in tests {
            let verdict = |of: &BTreeMap<String, String>| {
                of.get(test).map_or("not run", String::as_str).to_owned()
            };
            let (want, got) = (verdict(want), verdict(got));
            match (want == got, reasons.get(test)) {
                (true, None) => same += 1,
                (false, Some(_)) => excused += 1,
                (true, Some(_)) => {
                    wrong += 1;
                    println!("FAILED  {unit} {test}: now as on Linux, take it out of known.toml");
                }
                (false, None) => {
                    wrong += 1;
                    println!("FAILED  {unit} {test}: linux {want}, alea {got}");
                }
            }
        }
    }
    println!("\n| unit | Linux | Alea |\n|---|---|---|");
    for (unit, want) in linux {
        let got = alea.get(unit).unwrap_or(&none);
        println!("| {unit} | {} | {} |", Counts::of(want), Counts::of(got));
    }
    println!("\n{same} tests as on Linux, {excused} known differences, {wrong} others");
    if wrong == 0 && same > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many tests of a unit ended how.
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    lines: usize,
    status: String,
}

impl Counts {
    fn of(tests: &BTreeMap<String, String>) -> Self {
        let count = |wanted: &[&str]| {
            tests.values().filter(|verdict| wanted.contains(&verdict.as_str())).count()
        };
        Self {
            passed: count(&["pass", "expected"]),
            failed: count(&["fail"]),
            skipped: count(&["skip"]),
            lines: tests.keys().filter(|name| name.starts_with("line ")).count(),
            status: tests.get("exit").map_or("no end", String::as_str).to_owned(),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.lines > 0 {
            write!(f, "{} lines", self.lines)?;
        } else {
            write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)?;
        }
        if self.status == "0" { Ok(()) } else { write!(f, ", exit {}", self.status) }
    }
}
