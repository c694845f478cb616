//! `cargo xtask busybox`: BusyBox's own tests on Alea, compared with Linux test for test.
//!
//! The tests are upstream's, run by upstream's own runners (`testsuite/runtest`, `shell/ash_test/run-all`)
//! on Debian's unmodified binary. What Linux gives is kept in `tests/busybox`, so that a run need not
//! boot it; `--kernel linux` writes those files anew.

mod baseline;
pub mod failing;
mod fetch;
mod image;
mod report;
mod transcript;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};

use xtask_guest::inject::{FailAlloc, Rate};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_host::tally::Tally;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_shards::shard::Shard;
use xtask_shards::share::ShardArgs;

use baseline::{Baseline, Known};
use failing::Failing;
use fetch::{Busybox, Release};
use report::Report;
use transcript::Test;
use watch::Run;

/// Runs BusyBox's own tests, and compares each result with Linux's.
#[derive(Args)]
pub struct Suite {
    /// `alea` (built first), `linux` (Debian's; refreshes tests/busybox), or the path of a kernel image
    #[arg(long, value_name = "alea|linux|PATH", default_value = "alea")]
    kernel: String,
    /// Boot Linux and Alea in turn, N times each, and compare their wall times
    #[arg(long, value_name = "N", conflicts_with_all = ["kernel", "shard", "results"], value_parser = value_parser!(u32).range(1..))]
    versus: Option<u32>,
    /// The Debian release that the tests and the binary come from
    #[arg(long, value_name = "NAME", default_value = "bookworm")]
    release: Release,
    /// Also the two bc tests that write millions of lines through pipes
    #[arg(long)]
    full: bool,
    /// The shell's tests (shell/ash_test) instead
    #[arg(long, conflicts_with = "full")]
    ash: bool,
    /// Only the tests of this applet (with --ash: of this folder); may be given several times
    #[arg(long, value_name = "NAME")]
    applet: Vec<String>,
    /// Run all of it so often in one boot
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    passes: u32,
    /// Kill a test that takes more seconds, and go on
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print every test as it ends, with what it printed
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    fail_alloc: FailAlloc,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

/// Which tests are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `testsuite` without [`image::SLOW`].
    Light,
    /// All of `testsuite`.
    Full,
    /// `shell/ash_test`.
    Ash,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Full => "full",
            Self::Ash => "ash",
        }
    }

    /// Seconds that one test may take, many times what the longest takes on Linux under TCG: ten seconds in
    /// the light form, a quarter of an hour in the full one, two minutes among the shell's.
    fn limit(self) -> u64 {
        match self {
            Self::Light => 600,
            Self::Full => 7200,
            Self::Ash => 1800,
        }
    }
}

/// Everything that is decided before a guest starts.
struct Plan {
    release: Release,
    form: Form,
    /// Everything that `applets` may name.
    testable: BTreeSet<String>,
    applets: Vec<String>,
    passes: u32,
    limit: u64,
    verbose: bool,
    /// Run the applets one by one, to learn whose tests are whose.
    each: bool,
    fail_alloc: Option<Rate>,
    /// Which part of the applets these are.
    shard: Option<Shard>,
    machine: Machine,
    initrd: PathBuf,
    version: String,
    /// All that Linux gives, of every form.
    stored: Baseline,
    known: Known,
}

impl Suite {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        if self.kernel == "alea" {
            build::build(self.build)?;
        } else {
            build::initramfs()?;
        }
        let mut plan = self.plan()?;
        if let Some(times) = self.versus {
            return versus(&plan, times);
        }
        if self.kernel == "linux" {
            ensure!(!self.shards.is_asked(), "Linux's results are written by one whole run");
            return refresh(&plan);
        }
        let kernel = match self.kernel.as_str() {
            "alea" => paths::kernel(),
            path => PathBuf::from(path),
        };
        ensure!(kernel.is_file(), "{} is no file", kernel.display());
        let share = self.shards.share(&self.line(&self.applet), &plan.units()?)?;
        if self.shards.shard.is_some() {
            plan.applets = share.units.clone();
            plan.shard = self.shards.shard;
        }
        if share.units.is_empty() {
            return share.finish(Vec::new());
        }
        if plan.fail_alloc.is_some() {
            let failing = Failing::of(&plan, &kernel)?;
            failing.print();
            if self.fail_alloc.write_figures {
                failing.write()?;
            }
            let cases = failing.cases(&share.units, &self.line(&plan.applets));
            return share.finish(cases);
        }
        let report = plan.check(&kernel, "Alea")?;
        let cases = report.cases(&|unit| self.line(&[unit.to_owned()]));
        let code = share.finish(cases)?;
        Ok(if report.is_good() { code } else { ExitCode::FAILURE })
    }

    /// The command that runs the tests of `applets`, with the same options.
    fn line(&self, applets: &[String]) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "busybox".into()];
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        if self.kernel != "alea" {
            option("--kernel", &self.kernel);
        }
        if self.release.name() != Release::Bookworm.name() {
            option("--release", self.release.name());
        }
        applets.iter().for_each(|applet| option("--applet", applet));
        if self.passes != 1 {
            option("--passes", &self.passes.to_string());
        }
        if let Some(limit) = self.limit {
            option("--limit", &limit.to_string());
        }
        let forms = [("--full", self.full), ("--ash", self.ash)];
        words.extend(forms.iter().filter(|(_, is)| *is).map(|(word, _)| (*word).to_owned()));
        words.extend(self.fail_alloc.words());
        words.extend(self.machine.words());
        words.extend(self.build.words());
        process::line(words)
    }

    fn plan(&self) -> Result<Plan> {
        let form = match (self.full, self.ash) {
            (true, _) => Form::Full,
            (_, true) => Form::Ash,
            _ => Form::Light,
        };
        let mut plan = Plan::new(self.release, form, self.machine.machine()?)?;
        let unknown = self.applet.iter().find(|name| !plan.testable.contains(*name));
        if let Some(name) = unknown {
            let all: Vec<&str> = plan.testable.iter().map(String::as_str).collect();
            bail!("BusyBox has no tests of {name:?}; it has some of: {}", all.join(" "));
        }
        plan.applets = self.applet.clone();
        plan.passes = self.passes;
        plan.limit = self.limit.unwrap_or(form.limit());
        plan.verbose = self.verbose;
        if let Some(rate) = self.fail_alloc.rate {
            plan.passes = plan.passes.max(failing::LEAST_PASSES);
            plan.fail_alloc = Some(failing::sparing_shells(rate));
        }
        Ok(plan)
    }
}

/// The light form of BusyBox 1.35 on the Alea that was built before, for `ci`.
pub fn check() -> Result<Tally> {
    let kernel = paths::kernel();
    paths::require(std::slice::from_ref(&kernel))?;
    let machine = MachineArgs::default().machine()?;
    let report = Plan::new(Release::Bookworm, Form::Light, machine)?.check(&kernel, "Alea")?;
    let (passed, failed) = report.tally();
    Ok(Tally { passed, failed })
}

impl Plan {
    fn new(release: Release, form: Form, machine: Machine) -> Result<Self> {
        let busybox = Busybox::of(release)?;
        let initrd = paths::alea().join(format!("busybox-{}.cpio", release.name()));
        image::write(&busybox, &initrd)?;
        Ok(Self {
            release,
            form,
            testable: testable(&busybox, form)?,
            applets: Vec::new(),
            passes: 1,
            limit: form.limit(),
            verbose: false,
            each: false,
            fail_alloc: None,
            shard: None,
            machine,
            initrd,
            version: busybox.version,
            stored: Baseline::load(release, form)?,
            known: Known::load(release)?,
        })
    }

    /// The applets that are tested, each once, in the order of the run.
    fn units(&self) -> Result<Vec<String>> {
        let mut units: Vec<String> = Vec::new();
        for entry in self.required()?.entries {
            if !units.contains(&entry.applet) {
                units.push(entry.applet);
            }
        }
        Ok(units)
    }

    /// What Linux gives for the tests of this plan.
    fn expected(&self) -> Baseline {
        self.stored.part(self.form, &self.applets)
    }

    /// The same, of which there is something.
    fn required(&self) -> Result<Baseline> {
        ensure!(
            !self.stored.entries.is_empty(),
            "{} is missing: `cargo xtask busybox --kernel linux` with the same options writes it",
            paths::shown(&baseline::file(self.release, self.form))
        );
        let expected = self.expected();
        ensure!(!expected.entries.is_empty(), "no test of {} is known", self.applets.join(", "));
        Ok(expected)
    }

    /// The machine that runs this plan on `kernel`.
    fn machine(&self, kernel: &Path) -> Machine {
        // Linux gives up on a machine whose timer comes late, as QEMU's does on a busy host.
        let mut line = format!(
            "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check suite.form={} suite.passes={} suite.limit={}",
            self.form.name(),
            self.passes,
            self.limit
        );
        if !self.applets.is_empty() {
            line += &format!(" suite.applets={}", self.applets.join(","));
        }
        if self.verbose {
            line += " suite.verbose=1";
        }
        if self.each {
            line += " suite.each=1";
        }
        if let Some(rate) = self.fail_alloc {
            line += &format!(" {}", rate.word());
        }
        self.machine.clone().direct(kernel, Some(self.initrd.clone()), &line)
    }

    /// Runs the tests on `kernel`, compares, prints, and writes the report's files.
    fn check(&self, kernel: &Path, label: &str) -> Result<Report> {
        let expected = self.required()?;
        let run = Run::of(self, kernel, expected.entries.len())?;
        let report = Report::new(self, label, kernel, run, &expected);
        report.print();
        report.write()?;
        Ok(report)
    }
}

/// The applets that have tests, in a file or a folder of their own; of the shell's tests the folders.
fn testable(busybox: &Busybox, form: Form) -> Result<BTreeSet<String>> {
    let ash = form == Form::Ash;
    let folder = busybox.source(if ash { "shell/ash_test" } else { "testsuite" });
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).with_context(|| paths::shown(&folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            names.insert(name);
        } else if let Some(applet) = name.strip_suffix(".tests").filter(|_| !ash) {
            names.insert(applet.to_owned());
        }
    }
    Ok(names)
}

/// Runs on Linux and stores what it gives.
fn refresh(plan: &Plan) -> Result<ExitCode> {
    setup::ensure(&[Need::Linux])?;
    let linux = paths::vmlinuz();
    let expected = plan.expected();
    let run = Run::of(plan, &linux, expected.entries.len())?;
    let mut report = Report::new(plan, "Linux", &linux, run, &expected);
    report.print();
    report.write()?;
    ensure!(report.is_whole(), "Linux did not run all tests: tests/busybox stays as it is");
    let passes = &mut report.passes;
    let first: Vec<_> = passes[0].tests.iter().map(|t| (t.kind, t.name.clone())).collect();
    for pass in passes.iter().skip(1) {
        let same = pass.tests.len() == first.len()
            && pass.tests.iter().zip(&first).all(|(test, (kind, name))| {
                test.name == *name && (test.kind == *kind || plan.known.is_chance(name))
            });
        ensure!(same, "Linux's own results differ between passes: tests/busybox stays as it is");
    }
    let tests = &mut passes[0].tests;
    if plan.form == Form::Ash {
        for test in tests.iter_mut() {
            test.applet = test.name.split('/').next().map(str::to_owned);
        }
    } else if let [applet] = plan.applets.as_slice() {
        tests.iter_mut().for_each(|test| test.applet = Some(applet.clone()));
    } else if tests.iter().any(|test| test.applet.is_none()) {
        ensure!(plan.applets.is_empty(), "there are new tests: name one applet at a time, or none");
        learn_applets(plan, &linux, tests)?;
    }
    let file = baseline::file(plan.release, plan.form);
    let package = std::fs::read_to_string(paths::alea().join("linux/package")).unwrap_or_default();
    let about = format!("busybox {} on {}", plan.version, package.trim());
    let new = if plan.applets.is_empty() {
        plan.stored.refreshed(plan.form, tests, &plan.known)
    } else {
        plan.stored.refreshed_in(&plan.applets, plan.form, tests, &plan.known)
    };
    let text = new.text(&about);
    let old = std::fs::read_to_string(&file).unwrap_or_default();
    println!("{} {}", if old == text { "as before:" } else { "wrote" }, paths::shown(&file));
    std::fs::write(&file, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the applets one by one and notes in `tests`, those of a whole run, which applet each is of.
fn learn_applets(plan: &Plan, kernel: &Path, tests: &mut [Test]) -> Result<()> {
    let each = Plan {
        each: true,
        passes: 1,
        applets: Vec::new(),
        testable: BTreeSet::new(),
        stored: Baseline::default(),
        known: Known::default(),
        initrd: plan.initrd.clone(),
        version: plan.version.clone(),
        machine: plan.machine.clone(),
        ..*plan
    };
    let run = Run::of(&each, kernel, tests.len())?;
    let Some(pass) = run.transcript.passes.first() else { bail!("{}", run.outcome.describe()) };
    let learnt = Baseline::of(&pass.tests);
    let differences = learnt.compare(tests);
    ensure!(differences.is_empty(), "applet by applet Linux's results differ: {differences:#?}");
    Ok(())
}

/// Linux and Alea in turn; their wall times side by side.
fn versus(plan: &Plan, times: u32) -> Result<ExitCode> {
    setup::ensure(&[Need::Linux])?;
    let kernels = [("Linux", paths::vmlinuz()), ("Alea", paths::kernel())];
    let mut wall: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut cpu = wall.clone();
    let mut good = true;
    for _ in 0..times {
        for (label, kernel) in &kernels {
            let report = plan.check(kernel, label)?;
            good &= report.is_good();
            wall.entry(label).or_default().extend(report.seconds());
            cpu.entry(label).or_default().push(report.cpu_seconds);
        }
    }
    for (what, seconds) in [("wall time", wall), ("CPU time with boot", cpu)] {
        let (linux, alea) = (median(seconds.get("Linux")), median(seconds.get("Alea")));
        println!(
            "{what}, median of {times}: Linux {linux:.1} s, Alea {alea:.1} s, Alea / Linux {:.3}",
            alea / linux
        );
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn median(figures: Option<&Vec<f64>>) -> f64 {
    let mut all = figures.cloned().unwrap_or_default();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
