//! What a run of the runtimes' tests says: each difference, and a table of the units.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use super::Results;
use xtask_shards::results::Verdict;

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

/// How two kernels' results compare.
pub struct Compared {
    /// Whether there is something to compare, and nothing differs that is not known.
    pub is_good: bool,
    /// Of each unit the verdict, and what differs.
    pub units: BTreeMap<String, (Verdict, String)>,
}

/// Prints the differences that `known` does not explain, and the table.
pub fn compare(linux: &Results, alea: &Results, known: &Results) -> Compared {
    let (mut same, mut excused, mut wrong) = (0, 0, 0);
    let none = BTreeMap::new();
    let mut units = BTreeMap::new();
    for (unit, want) in linux {
        let got = alea.get(unit).unwrap_or(&none);
        let reasons = known.get(unit).unwrap_or(&none);
        let tests: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
        let (mut bad, mut told) = (Vec::new(), Vec::new());
        for test in tests {
            let verdict = |of: &BTreeMap<String, String>| {
                of.get(test).map_or("not run", String::as_str).to_owned()
            };
            let (want, got) = (verdict(want), verdict(got));
            match (want == got, reasons.get(test)) {
                (true, None) => same += 1,
                (false, Some(why)) => told.push(format!("{test}: {why}")),
                (true, Some(_)) => {
                    bad.push(format!("{test}: now as on Linux, take it out of known.toml"));
                }
                (false, None) => bad.push(format!("{test}: linux {want}, alea {got}")),
            }
        }
        bad.iter().for_each(|line| println!("FAILED  {unit} {line}"));
        excused += told.len();
        wrong += bad.len();
        let verdict = match (bad.is_empty(), told.is_empty()) {
            (false, _) => (Verdict::Failed, bad.join("\n")),
            (true, false) => (Verdict::Known, told.join("\n")),
            (true, true) => (Verdict::Passed, Counts::of(got).to_string()),
        };
        units.insert(unit.clone(), verdict);
    }
    println!("\n| unit | Linux | Alea |\n|---|---|---|");
    for (unit, want) in linux {
        let got = alea.get(unit).unwrap_or(&none);
        println!("| {unit} | {} | {} |", Counts::of(want), Counts::of(got));
    }
    println!("\n{same} tests as on Linux, {excused} known differences, {wrong} others");
    Compared { is_good: wrong == 0 && same > 0, units }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn results(lines: &[(&str, &str, &str)]) -> Results {
        let mut results = Results::new();
        for (unit, test, verdict) in lines {
            let tests = results.entry((*unit).to_owned()).or_default();
            tests.insert((*test).to_owned(), (*verdict).to_owned());
        }
        results
    }

    #[test]
    fn each_unit_has_a_verdict() {
        let linux = results(&[("a", "x", "pass"), ("b", "x", "pass"), ("c", "x", "pass")]);
        let alea = results(&[("a", "x", "pass"), ("b", "x", "fail"), ("c", "x", "fail")]);
        let known = results(&[("b", "x", "why")]);
        let Compared { is_good, units } = compare(&linux, &alea, &known);
        assert!(!is_good);
        let of = |unit: &str| (units[unit].0, units[unit].1.as_str());
        assert_eq!(of("a"), (Verdict::Passed, "1 passed, 0 failed, 0 skipped, exit no end"));
        assert_eq!(of("b"), (Verdict::Known, "x: why"));
        assert_eq!(of("c"), (Verdict::Failed, "x: linux pass, alea fail"));
        assert!(compare(&linux, &linux, &Results::new()).is_good);
        assert!(!compare(&Results::new(), &Results::new(), &Results::new()).is_good);
    }
}
