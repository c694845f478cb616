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
        } else if unit.starts_with("linux:") {
            linux_line(line, tests);
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

/// `ok 3 global.name`, `not ok 4 global.other # SKIP why`; `[OK]` and `[FAIL]` of what is older, by their number.
fn linux_line(line: &str, tests: &mut BTreeMap<String, String>) {
    let line = line.trim_start();
    let starts = [("ok ", "pass"), ("not ok ", "fail"), ("[OK]", "pass"), ("[FAIL]", "fail")];
    let told =
        starts.iter().find_map(|(start, verdict)| Some((line.strip_prefix(start)?, *verdict)));
    let Some((rest, verdict)) = told else { return };
    let verdict = if rest.to_uppercase().contains("# SKIP") { "skip" } else { verdict };
    let name = rest.split(" # ").next().unwrap_or_default();
    let name = name.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == '-').trim();
    // What is older says numbers of its own beside.
    let number = tests.len();
    let name = if line.starts_with('[') { format!("result {number}") } else { name.to_owned() };
    let name = if tests.contains_key(&name) { format!("{name} {number}") } else { name };
    tests.insert(name, verdict.to_owned());
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

    #[test]
    fn verdicts_of_self_tests_are_found() {
        let text = "=== unit linux:seccomp_bpf\nTAP version 13\n1..4\n#  RUN  a ...\nok 1 global.a\n\
            not ok 2 global.b\nok 3 TSYNC.c # SKIP no root\nok 4 global.a\n--- exit 1\n\
            === unit linux:syscall_nt\n[RUN]\tSet NT\n[OK]\t0x12\n[FAIL]\tno\n--- exit 0\n";
        let all = parse(text);
        let seccomp = &all["linux:seccomp_bpf"];
        assert_eq!([&seccomp["global.a"], &seccomp["global.b"]], ["pass", "fail"]);
        assert_eq!([&seccomp["TSYNC.c"], &seccomp["global.a 3"]], ["skip", "pass"]);
        let older = &all["linux:syscall_nt"];
        assert_eq!([&older["result 0"], &older["result 1"], &older["exit"]], ["pass", "fail", "0"]);
    }
}
