//! Verdicts out of what the tests print.

use std::collections::BTreeMap;

use super::Results;

/// Cuts the output of a guest into units and each unit into tests. How a unit ended is a test too, `exit`.
pub fn parse(output: &str) -> Results {
    let mut results = Results::new();
    let mut unit = String::new();
    let mut pending = None;
    for line in output.lines().map(str::trim_end) {
        if let Some(name) = line.strip_prefix("=== unit ") {
            unit = name.to_owned();
            results.entry(unit.clone()).or_default();
            continue;
        }
        let Some(tests) = results.get_mut(&unit) else { continue };
        if let Some(status) = line.strip_prefix("--- exit ") {
            tests.insert("exit".into(), status.to_owned());
            unit.clear();
        } else if unit.starts_with("go:") {
            go_line(line, tests);
        } else if unit.starts_with("python:") {
            python_line(line, tests, &mut pending);
        } else {
            let number = tests.len();
            tests.insert(format!("line {number}"), line.to_owned());
        }
    }
    results
}

/// `--- PASS: TestName (0.00s)`, indented for a part of a test; a panic leaves the running test without one.
fn go_line(line: &str, tests: &mut BTreeMap<String, String>) {
    let Some((_, rest)) = line.split_once("--- ") else { return };
    let Some((verdict, rest)) = rest.split_once(": ") else { return };
    let verdict = match verdict {
        "PASS" => "pass",
        "FAIL" => "fail",
        "SKIP" => "skip",
        _ => return,
    };
    if let Some(name) = rest.split(' ').next() {
        tests.insert(name.to_owned(), verdict.into());
    }
}

/// `test_name (test.module.Class.test_name) ... ok`, possibly with a line of its own for the description.
fn python_line(line: &str, tests: &mut BTreeMap<String, String>, pending: &mut Option<String>) {
    let name = line.split_once(" (").and_then(|(name, rest)| {
        let (path, _) = rest.split_once(')')?;
        let fits = name.starts_with("test") && !name.contains(' ') && path.contains('.');
        fits.then(|| path.strip_prefix("test.").unwrap_or(path).to_owned())
    });
    if name.is_some() {
        *pending = name;
    }
    let verdict = match line.rsplit_once("... ").map_or(line, |(_, verdict)| verdict) {
        "ok" => "pass",
        "FAIL" | "ERROR" => "fail",
        "expected failure" => "expected",
        skipped if skipped.starts_with("skipped ") => "skip",
        _ => return,
    };
    if let Some(name) = pending.take() {
        tests.insert(name, verdict.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_found() {
        let text = "boot\n=== unit go:os\n=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestB/x (0.1s)\n\
            --- FAIL: TestC (1.00s)\nFAIL\n--- exit 1\n=== unit python:test_os\n\
            test_a (test.test_os.X.test_a) ... ok\ntest_b (test.test_os.X.test_b)\nWords. ... skipped 'no'\n\
            test_c (test.test_os.X.test_c) ... noise\nFAIL\nFAIL: test_c (test.test_os.X.test_c)\n--- exit 0\n=== end\n";
        let all = parse(text);
        let go = &all["go:os"];
        assert_eq!(go["TestA"], "pass");
        assert_eq!(go["TestB/x"], "skip");
        assert_eq!(go["TestC"], "fail");
        assert_eq!(go["exit"], "1");
        let python = &all["python:test_os"];
        assert_eq!(python["test_os.X.test_a"], "pass");
        assert_eq!(python["test_os.X.test_b"], "skip");
        assert_eq!(python["test_os.X.test_c"], "fail");
        assert_eq!(python.len(), 4);
    }
}
