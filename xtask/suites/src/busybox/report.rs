//! What came of a run: as text, as JSON, as JUnit XML and as it was printed, under `target/alea/`.
//!
//! Good is what Linux gives, its six failures included: only a difference fails, or a run that did not
//! come to its end, or lost memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

use super::Plan;
use super::baseline::{Baseline, Difference};
use super::transcript::{Kind, Pass, Test};
use super::watch::Run;
use xtask_guest::guest::End;
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_shards::results::{Case, Verdict};

/// The share of free memory that may be missing after a pass: what caches keep.
const MAY_BE_MISSING: f64 = 0.01;

/// Tests without a result that are named one by one; after a crash there may be hundreds.
const NAMED: usize = 20;

/// A run, compared.
pub struct Report {
    /// `Alea` or `Linux`.
    label: String,
    title: String,
    /// The stem of the files that are written.
    stem: String,
    facts: Value,
    /// All that came from the serial line.
    output: String,
    /// QEMU's CPU time for one pass, its share of the boot included.
    pub cpu_seconds: f64,
    pub passes: Vec<Pass>,
    passes_wanted: u32,
    /// Of each pass.
    differences: Vec<Vec<Judged>>,
    /// Whatever else is wrong.
    problems: Vec<String>,
}

/// A difference, with the reason if it is known.
struct Judged {
    difference: Difference,
    known: Option<String>,
}

impl Report {
    pub fn new(plan: &Plan, label: &str, kernel: &Path, run: Run, expected: &Baseline) -> Self {
        let cpus = plan.machine.smp;
        let form = plan.form.name();
        let cpu_seconds = run.cpu.as_secs_f64() / f64::from(plan.passes);
        let mut report = Self {
            label: label.to_owned(),
            title: format!("busybox {} ({form}) on {label}, {cpus} CPU", plan.version),
            stem: match plan.shard {
                Some(shard) => {
                    format!("busybox-{}-{form}-{}", plan.release.name(), shard.file_name())
                }
                None => format!("busybox-{}-{form}", plan.release.name()),
            },
            facts: json!({
                "busybox": plan.version, "release": plan.release.name(), "form": form, "kernel": label,
                "cpus": cpus, "memory": plan.machine.memory, "applets": plan.applets,
                "seconds_with_boot": run.outcome.elapsed.as_secs_f64(), "cpu_seconds": cpu_seconds,
            }),
            output: run.outcome.output.clone(),
            cpu_seconds,
            passes: run.transcript.passes.clone(),
            passes_wanted: plan.passes,
            differences: Vec::new(),
            problems: run.transcript.complaints.clone(),
        };
        report.look_at_the_end(kernel, &run);
        for number in 0..report.passes.len() {
            let pass = &mut report.passes[number];
            let differences = expected.compare(&mut pass.tests);
            for name in plan.known.gone(expected, &differences) {
                let problem = format!("{name:?} is as on Linux now: take it out of known.toml");
                report.problems.push(problem);
            }
            let judge = |difference: Difference| {
                let known = plan.known.reason(&difference.name).map(str::to_owned);
                Judged { difference, known }
            };
            // With nothing to compare with there is nothing to tell: a baseline is being made.
            let told = differences.into_iter().filter(|_| !expected.entries.is_empty());
            report.differences.push(told.map(judge).collect());
            report.look_at_memory(number);
        }
        report
    }

    fn look_at_the_end(&mut self, kernel: &Path, run: &Run) {
        if let Some(panic) = symbolize::panic_report(kernel, &run.outcome.output) {
            self.problems.push(panic);
        }
        if !run.transcript.done {
            let after = self.passes.iter().rev().find_map(|pass| pass.tests.last());
            let after = after.map_or("no test", |test| &test.name);
            let (end, at) = (run.outcome.describe(), run.outcome.stuck_at(kernel));
            self.problems
                .push(format!("not finished; the last result was of {after:?}: {end}\n{at}"));
        } else if run.outcome.end != End::Exited(0) {
            self.problems.push(run.outcome.describe());
        }
    }

    /// Compares with the memory before the first pass, so that small losses add up.
    fn look_at_memory(&mut self, number: usize) {
        let before = self.passes[0].free_before_kib;
        let Some(end) = self.passes[number].end else { return };
        let missing = before.saturating_sub(end.free_kib);
        // Linux's caches grow as they like; the claim is about Alea.
        if self.label != "Linux" && missing as f64 > before as f64 * MAY_BE_MISSING {
            self.problems.push(format!(
                "memory was lost: {before} KiB free before, {} KiB after pass {}",
                end.free_kib,
                number + 1
            ));
        }
    }

    /// True if all passes ran to their end.
    pub fn is_whole(&self) -> bool {
        let ended = self.passes.iter().filter(|pass| pass.end.is_some()).count();
        ended == self.passes_wanted as usize
    }

    /// True if nothing differs and nothing else is wrong.
    pub fn is_good(&self) -> bool {
        self.tally().1 == 0 && self.is_whole()
    }

    /// Results that are right, and all that is wrong.
    pub fn tally(&self) -> (u64, u64) {
        let tests: usize = self.passes.iter().map(|pass| pass.tests.len()).sum();
        let all = self.differences.iter().flatten();
        let found = all.clone().filter(|one| one.known.is_none() && one.difference.test.is_some());
        let wrong = all.filter(|one| one.known.is_none()).count() + self.problems.len();
        ((tests - found.count()) as u64, wrong as u64)
    }

    /// The duration of each pass that ended.
    pub fn seconds(&self) -> Vec<f64> {
        let ends = self.passes.iter().filter_map(|pass| pass.end);
        ends.map(|end| end.took.as_secs_f64()).collect()
    }

    pub fn print(&self) {
        println!("{}", self.title);
        for (pass, differences) in self.passes.iter().zip(&self.differences) {
            println!("  {}", summary(pass));
            let lost = differences.iter().filter(|one| one.difference.test.is_none()).count();
            let mut named = 0;
            for one in differences {
                named += usize::from(one.difference.test.is_none());
                if one.difference.test.is_some() || named <= NAMED {
                    self.print_difference(one, pass);
                }
            }
            if lost > NAMED {
                println!("  ... and {} more without a result", lost - NAMED);
            }
        }
        for problem in &self.problems {
            println!("PROBLEM {problem}");
        }
        let (right, wrong) = self.tally();
        println!("  QEMU took {:.1} s of CPU time a pass", self.cpu_seconds);
        println!("  {right} results as on Linux, {wrong} wrong");
    }

    fn print_difference(&self, one: &Judged, pass: &Pass) {
        let test = one.difference.test.and_then(|at| pass.tests.get(at));
        println!("{}", line(&self.label, one, test));
        if one.known.is_none() {
            for text in test.iter().flat_map(|test| &test.details) {
                println!("    | {text}");
            }
        }
    }

    /// Writes `target/alea/STEM.json`, `STEM.xml` and `STEM.log`.
    pub fn write(&self) -> Result<()> {
        let kernel = self.label.to_lowercase();
        let file = |ending: &str| paths::alea().join(format!("{}-{kernel}.{ending}", self.stem));
        let json = serde_json::to_string_pretty(&self.json())? + "\n";
        fs::write(file("json"), json)?;
        let xml = self.junit().to_string().context("cannot write JUnit XML")?;
        fs::write(file("xml"), xml)?;
        fs::write(file("log"), &self.output)?;
        println!("  {}, .xml and .log", paths::shown(&file("json")));
        Ok(())
    }

    fn json(&self) -> Value {
        let passes = self.passes.iter().zip(&self.differences).map(|(pass, differences)| {
            let test = |test: &Test| {
                json!({
                    "name": test.name, "applet": test.applet, "result": test.kind,
                    "seconds": test.took.as_secs_f64(), "hung": test.hung, "details": test.details,
                })
            };
            let difference = |one: &Judged| {
                let got = one.difference.test.and_then(|at| pass.tests.get(at));
                json!({
                    "name": one.difference.name, "applet": one.difference.applet, "linux": one.difference.want,
                    "got": got.map(|test| test.kind), "known": one.known,
                })
            };
            json!({
                "seconds": pass.end.map(|end| end.took.as_secs_f64()),
                "status": pass.end.map(|end| end.status),
                "free_before_kib": pass.free_before_kib,
                "free_after_kib": pass.end.map(|end| end.free_kib),
                "differences": differences.iter().map(difference).collect::<Vec<_>>(),
                "tests": pass.tests.iter().map(test).collect::<Vec<_>>(),
            })
        });
        let passes: Vec<Value> = passes.collect();
        json!({ "run": self.facts, "problems": self.problems, "passes": passes })
    }

    /// Every test as a case of its applet; `repeat` is the line that runs an applet again.
    pub fn cases(&self, repeat: &dyn Fn(&str) -> String) -> Vec<Case> {
        let mut cases = Vec::new();
        for (number, (pass, differences)) in (1..).zip(self.passes.iter().zip(&self.differences)) {
            let mut seen = BTreeMap::new();
            let mut add =
                |applet: &str, name: &str, (verdict, message): (Verdict, String), seconds| {
                    // Some tests run twice.
                    let times: &mut u32 =
                        seen.entry((applet.to_owned(), name.to_owned())).or_default();
                    *times += 1;
                    let again = if *times > 1 { format!(" (time {times})") } else { String::new() };
                    let of = if number > 1 { format!(" (pass {number})") } else { String::new() };
                    let case = Case::of(applet, verdict, seconds, &message, &repeat(applet));
                    cases.push(Case { name: format!("{name}{again}{of}"), ..case });
                };
            for (at, test) in pass.tests.iter().enumerate() {
                let differs = differences.iter().find(|one| one.difference.test == Some(at));
                let (verdict, message) = self.verdict(test, differs);
                let applet = test.applet.as_deref().unwrap_or("unknown");
                add(applet, &test.name, (verdict, message), test.took.as_secs_f64());
            }
            for one in differences.iter().filter(|one| one.difference.test.is_none()) {
                let verdict = if one.known.is_some() { Verdict::Known } else { Verdict::Failed };
                let Difference { name, applet, .. } = &one.difference;
                add(applet, name, (verdict, line(&self.label, one, None)), 0.0);
            }
        }
        let first = cases.first().map_or("all".to_owned(), |case| case.unit.clone());
        for problem in &self.problems {
            let case = Case::of(&first, Verdict::Failed, 0.0, problem, &repeat(&first));
            cases.push(Case { name: "the run itself".to_owned(), ..case });
        }
        cases
    }

    fn verdict(&self, test: &Test, differs: Option<&Judged>) -> (Verdict, String) {
        match (differs, test.kind) {
            (Some(one), _) if one.known.is_none() => {
                let details = test.details.join("\n");
                (Verdict::Failed, format!("{}\n{details}", line(&self.label, one, Some(test))))
            }
            (Some(one), _) => (Verdict::Known, one.known.clone().unwrap_or_default()),
            (None, Kind::Pass) => (Verdict::Passed, String::new()),
            (None, Kind::Fail) => (Verdict::Known, "fails on Linux too".to_owned()),
            (None, kind) => (Verdict::Skipped, format!("{kind} as on Linux")),
        }
    }

    fn junit(&self) -> Junit {
        let mut report = Junit::new(&self.title);
        for (number, (pass, differences)) in (1..).zip(self.passes.iter().zip(&self.differences)) {
            let mut suite = TestSuite::new(format!("{} pass {number}", self.stem));
            for (at, test) in pass.tests.iter().enumerate() {
                let differs = differences.iter().find(|one| one.difference.test == Some(at));
                suite.add_test_case(self.case(test, differs));
            }
            for one in differences.iter().filter(|one| one.difference.test.is_none()) {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_message(line(&self.label, one, None));
                let mut case = TestCase::new(&*one.difference.name, status);
                case.set_classname(&*one.difference.applet);
                suite.add_test_case(case);
            }
            report.add_test_suite(suite);
        }
        if !self.problems.is_empty() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(self.problems.join("\n"));
            let mut suite = TestSuite::new("the run itself");
            suite.add_test_case(TestCase::new("the run itself", status));
            report.add_test_suite(suite);
        }
        report
    }

    fn case(&self, test: &Test, differs: Option<&Judged>) -> TestCase {
        let status = match (differs, test.kind) {
            (Some(one), _) if one.known.is_none() => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(line(&self.label, one, Some(test)));
                status.set_description(test.details.join("\n"));
                status
            }
            (None, Kind::Pass) => TestCaseStatus::success(),
            (known, kind) => {
                let why = known.and_then(|one| one.known.clone());
                let mut status = TestCaseStatus::skipped();
                status.set_message(why.unwrap_or_else(|| format!("{kind} as on Linux")));
                status
            }
        };
        let mut case = TestCase::new(&*test.name, status);
        case.set_classname(test.applet.as_deref().unwrap_or("unknown")).set_time(test.took);
        case
    }
}

/// Counts, time and memory of a pass in one line.
fn summary(pass: &Pass) -> String {
    let counts = pass.counts();
    let count = |kind| counts.get(&kind).copied().unwrap_or(0);
    let results = format!(
        "{} passed, {} failed, {} skipped, {} untested",
        count(Kind::Pass),
        count(Kind::Fail),
        count(Kind::Skipped),
        count(Kind::Untested)
    );
    match pass.end {
        Some(end) => format!(
            "{results} in {:.1} s; free memory {} KiB before, {} KiB after ({:+.2} %)",
            end.took.as_secs_f64(),
            pass.free_before_kib,
            end.free_kib,
            (end.free_kib as f64 / pass.free_before_kib.max(1) as f64 - 1.0) * 100.0
        ),
        None => format!("{results}, then the guest ended"),
    }
}

/// A difference in one line.
fn line(label: &str, one: &Judged, test: Option<&Test>) -> String {
    let Difference { name, applet, want, .. } = &one.difference;
    let want = want.map_or("no such test", Kind::word);
    let got = test.map_or("no result", |test| test.kind.word());
    let hung = test.and_then(|test| test.hung.as_ref());
    let hung =
        hung.map_or_else(String::new, |hung| format!(" (it hung; killed after seconds {hung})"));
    match &one.known {
        Some(reason) => format!("known   {applet}: {name}: Linux {want}, {label} {got}: {reason}"),
        None => format!("DIFFERS {applet}: {name}: Linux {want}, {label} {got}{hung}"),
    }
}
