//! Results as JUnit XML, which the engines that run work on many machines can show.

use std::time::Duration;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::results::{Case, Results, Verdict};

/// The report of one part.
pub fn of_part(results: &Results) -> Result<String> {
    let mut report = Report::new(&*results.command);
    report.add_test_suite(suite(results));
    text(&report)
}

/// All parts, and what is wrong with the whole: `(where, what)`.
pub fn of_all<'a>(
    parts: impl Iterator<Item = &'a Results>,
    problems: &[(String, String)],
) -> Result<String> {
    let mut report = Report::new("cargo xtask merge");
    report.add_test_suites(parts.map(suite));
    if !problems.is_empty() {
        let mut suite = TestSuite::new("the parts themselves");
        for (place, what) in problems {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(what.as_str());
            suite.add_test_case(TestCase::new(place.as_str(), status));
        }
        report.add_test_suite(suite);
    }
    text(&report)
}

fn text(report: &Report) -> Result<String> {
    report.to_string().context("cannot write JUnit XML")
}

fn suite(results: &Results) -> TestSuite {
    let mut suite = TestSuite::new(format!("{} --shard {}", results.command, results.shard));
    suite.set_time(duration(results.seconds));
    suite.add_property(("host", &*results.host)).add_property(("source", &*results.source));
    for case in &results.cases {
        suite.add_test_case(test_case(case, results.name()));
    }
    suite
}

fn test_case(case: &Case, command: &str) -> TestCase {
    let mut status = match case.verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Known | Verdict::Skipped => TestCaseStatus::skipped(),
        Verdict::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    if case.verdict != Verdict::Passed {
        let first = case.message.lines().next().unwrap_or_default();
        status.set_message(first);
        status.set_description(format!("{}\nrepeat: {}", case.message, case.repeat));
    }
    let mut one = TestCase::new(&*case.name, status);
    let class = if case.unit == case.name { command } else { &*case.unit };
    one.set_classname(class).set_time(duration(case.seconds));
    one
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::part;

    const NASTY: &str =
        "a < b && \"c\" > 'd' ]]> \u{1b}[31mred\u{1b}[0m \u{0}\u{8} ü\nsecond <line/> &amp;";

    /// What a kernel or a test may print must leave the file readable, and say what it said.
    #[test]
    fn what_tests_print_is_escaped() {
        let mut results =
            part("cargo xtask abi --append \"a<b>\"", "1/1", &["one", "x<&\"'>y"], &["one"]);
        results.cases[0].message = NASTY.into();
        results.cases[0].repeat = "cargo xtask abi 'one & two' <x".into();
        let xml = of_part(&results).unwrap();
        assert!(xml.contains("a &lt; b &amp;&amp; "), "{xml}");
        assert!(!xml.contains(['\u{1b}', '\u{0}', '\u{8}']), "{xml}");
        let read = Report::deserialize_from_str(&xml).unwrap();
        assert_eq!((read.tests, read.failures), (2, 1));
        let cases = &read.test_suites[0].test_cases;
        assert_eq!(cases[1].name.as_str(), "x<&\"'>y");
        let TestCaseStatus::NonSuccess { message, description, .. } = &cases[0].status else {
            panic!("{xml}");
        };
        let message = message.as_ref().unwrap().as_str();
        assert!(message.starts_with("a < b && \"c\" > 'd' ]]> "), "{message:?}");
        let description = description.as_ref().unwrap().as_str();
        assert!(description.contains("second <line/> &amp;"), "{description:?}");
        assert!(description.contains("repeat: cargo xtask abi 'one & two' <x"), "{description:?}");
    }

    #[test]
    fn verdicts_are_those_of_junit() {
        let mut results = part("cargo xtask abi", "1/1", &["a", "b", "c", "d"], &["d"]);
        results.cases[1].verdict = Verdict::Known;
        results.cases[2].verdict = Verdict::Skipped;
        results.cases[3].seconds = f64::NAN;
        let problems = [("2/4".to_owned(), "is missing".to_owned())];
        let xml = of_all([&results].into_iter(), &problems).unwrap();
        let read = Report::deserialize_from_str(&xml).unwrap();
        assert_eq!((read.tests, read.failures, read.errors), (5, 1, 1));
        assert_eq!(xml.matches("<skipped ").count(), 2, "{xml}");
        assert_eq!(read.test_suites[0].name.as_str(), "cargo xtask abi --shard 1/1");
    }
}
