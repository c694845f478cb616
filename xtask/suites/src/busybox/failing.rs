//! BusyBox's tests while allocations fail (`--fail-alloc`): nothing is compared, but the kernel must live, hold nothing of them
//! afterwards, and have run them.
//!
//! A shell whose fork fails ends, and the rest of its applet's tests with it; so the three shells between process 1 and a test
//! are spared, and the tests have all the failures. What the first pass leaves is what the later ones are compared with.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use super::fetch::Release;
use super::watch::Run;
use super::{Form, Plan};
use xtask_guest::guest::End;
use xtask_guest::inject::{Rate, Told};
use xtask_guest::qemu::MachineArgs;
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_host::tally::Tally;
use xtask_shards::results::{Case, Verdict};
use xtask_tidy::injected::{self, Injected};

/// The percentage of tests that must give a result, good or bad: one that lacks memory for its own files or loops may end without.
const MOST: usize = 90;
/// With fewer there is nothing to compare with.
pub const LEAST_PASSES: u32 = 2;
/// What CI runs: applets whose tests fork, pipe and write, and whose results do not all hang on one command.
const SAMPLE: [&str; 4] = ["sed", "xargs", "uniq", "cp"];
const SAMPLE_RATE: Rate = Rate { every: 400, seed: 3, generation: Some(TEST_GENERATION) };
/// Before a test come the script, runtest, and the shell of its applet (`TEST_DEPTH` of userland/suite.c).
const TEST_GENERATION: u32 = 4;

/// A rate that, unless it says otherwise, spares the shells that start the tests.
pub fn sparing_shells(rate: Rate) -> Rate {
    Rate { generation: rate.generation.or(Some(TEST_GENERATION)), ..rate }
}

/// What came of a run.
pub struct Failing {
    told: Told,
    /// Results of all passes.
    results: usize,
    /// Tests that there are, by name.
    tests: usize,
    /// Of these the ones that gave no result in any pass.
    never: BTreeSet<String>,
    /// Panics, hangs, and what was left behind.
    wrong: Vec<String>,
    seconds: f64,
}

impl Failing {
    /// Boots `kernel` and runs `plan` to its end.
    pub(super) fn of(plan: &Plan, kernel: &Path) -> Result<Self> {
        let expected = plan.expected();
        let run = Run::of(plan, kernel, expected.entries.len())?;
        let output = &run.outcome.output;
        let mut told = Told::default();
        told.add(output);
        let mut wrong: Vec<String> = output
            .lines()
            .filter_map(|line| line.strip_prefix("suite-left "))
            .map(String::from)
            .collect();
        if run.outcome.end != End::Exited(0) || !run.transcript.done {
            let report = symbolize::panic_report(kernel, output);
            wrong.push(report.unwrap_or_else(|| {
                format!("{}\n{}", run.outcome.describe(), run.outcome.stuck_at(kernel))
            }));
        }
        let results = || run.transcript.passes.iter().flat_map(|pass| &pass.tests);
        let all: BTreeSet<&str> = expected.entries.iter().map(|entry| &*entry.name).collect();
        let began: BTreeSet<&str> = results().map(|test| &*test.name).collect();
        Ok(Self {
            told,
            results: results().count(),
            tests: all.len(),
            never: all.difference(&began).map(|name| String::from(*name)).collect(),
            wrong,
            seconds: run.outcome.elapsed.as_secs_f64(),
        })
    }

    pub fn print(&self) {
        let gave = self.gave();
        println!("{} results, of {gave} of {} tests; {}", self.results, self.tests, self.told);
        self.never.iter().for_each(|name| println!("no result: {name}"));
        self.wrong.iter().for_each(|what| println!("FAILED  {what}"));
    }

    /// One case for each applet. All ran in one guest: what broke is told by a case of its own, and not of whom.
    pub fn cases(&self, applets: &[String], line: &str) -> Vec<Case> {
        let seconds = self.seconds / applets.len().max(1) as f64;
        let case = |applet: &String| Case::of(applet, Verdict::Passed, seconds, "", line);
        let mut cases: Vec<Case> = applets.iter().map(case).collect();
        if let (Some(first), false) = (applets.first(), self.is_good()) {
            let never = self.never.iter().map(|name| format!("no result: {name}"));
            let why: Vec<String> = self.wrong.iter().cloned().chain(never).collect();
            let name = "while allocations fail".to_owned();
            cases.push(Case {
                name,
                ..Case::of(first, Verdict::Failed, 0.0, &why.join("\n"), line)
            });
        }
        cases
    }

    /// Tests that gave a result in some pass.
    fn gave(&self) -> usize {
        self.tests - self.never.len()
    }

    /// Whether nothing broke, the tests ran, and allocations did fail.
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.gave() * 100 >= self.tests * MOST && self.told.failed > 0
    }

    /// Writes the row of the table in docs/testing.md.
    pub fn write(&self) -> Result<()> {
        let Told { asked, failed, frames } = self.told;
        injected::write(&Injected { asked, failed, frames, found: self.wrong.len() as u64 })
    }
}

/// A sample on the Alea that was built before, for `ci`.
pub fn check() -> Result<Tally> {
    let kernel = paths::kernel();
    paths::require(std::slice::from_ref(&kernel))?;
    let mut plan = Plan::new(Release::Bookworm, Form::Light, MachineArgs::default().machine()?)?;
    plan.applets = SAMPLE.map(String::from).to_vec();
    plan.passes = LEAST_PASSES;
    plan.fail_alloc = Some(SAMPLE_RATE);
    let failing = Failing::of(&plan, &kernel)?;
    failing.print();
    Ok(Tally { passed: failing.gave() as u64, failed: u64::from(!failing.is_good()) })
}
