//! `cargo xtask profile`: where the time of an exec goes, phase by phase.
//!
//! The kernel keeps the figures (`/proc/alea/exec_phases`); this boots it, has 500 execs done, and
//! prints what it says.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::bench::{Bench, Kernel};
use crate::flame::Flame;
use crate::report::{self, Event, GeneratorPart, PhasePart, ProfilePart, samples};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::{self, Accel, Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::table::{self, Table};
use xtask_host::{paths, process, term};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::shown;

/// Boots Alea, warms its caches, and shows where 500 execs of /bin/true spend their time.
#[derive(Args)]
pub struct Profile {
    /// What serves random bytes to user space
    #[arg(long, value_name = "GENERATOR")]
    generator: Option<Generator>,
    /// A second generator: boots once more and prints both tables
    #[arg(long, value_name = "GENERATOR")]
    compare: Option<Generator>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Measure under every generator and beside Linux, sample stacks, write target/alea/report/index.html
    #[arg(long)]
    report: bool,
    /// Write the phases into docs/figures.toml and the page that shows them
    #[arg(long, conflicts_with = "icount")]
    write_figures: bool,
    #[command(flatten)]
    flame: Flame,
    #[command(flatten)]
    machine: MachineArgs,
}

/// The values of the kernel's `random.generator=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Generator {
    Rdrand,
    Splitmix64,
    Chacha20,
}

impl Generator {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rdrand => "rdrand",
            Self::Splitmix64 => "splitmix64",
            Self::Chacha20 => "chacha20",
        }
    }
}

/// One line of the kernel's table.
#[derive(Debug, PartialEq, Serialize)]
pub struct Phase {
    pub name: String,
    pub count: u64,
    pub avg_ns: f64,
    pub min_ns: f64,
    pub max_ns: f64,
    pub p99_ns: f64,
    pub share_percent: f64,
}

/// One boot's table, and what else it printed.
#[derive(Serialize)]
struct Figures {
    generator: Option<&'static str>,
    phases: Vec<Phase>,
    /// What leaves a virtual machine, in 500 execs.
    vm_exits: Vec<(String, u64)>,
    #[serde(skip)]
    output: String,
}

impl Profile {
    /// The default generator, counted in instructions.
    pub fn instructions(machine: &MachineArgs) -> Self {
        Self {
            generator: None,
            compare: None,
            json: false,
            report: false,
            write_figures: false,
            flame: Flame::default(),
            machine: machine.clone(),
        }
    }

    /// One boot's phases.
    pub fn phases(&self, machine: &Machine) -> Result<Vec<Phase>> {
        Ok(self.measure(machine, self.generator)?.phases)
    }

    pub fn run(self) -> Result<ExitCode> {
        if self.flame.flame {
            return self.flame.run(&self.machine);
        }
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(build::Options::SHIPPED)?;
        let machine = self.machine.machine()?;
        if self.report {
            setup::ensure(&[Need::Linux])?;
            return self.write_report(&machine).map(|()| ExitCode::SUCCESS);
        }
        let mut all = vec![self.measure(&machine, self.generator)?];
        if self.compare.is_some() {
            all.push(self.measure(&machine, self.compare)?);
        }
        if self.write_figures {
            self.show(&all[0].phases)?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(ExitCode::SUCCESS);
        }
        for figures in &all {
            println!(
                "500 execs of /bin/true, random.generator={}",
                figures.generator.unwrap_or("(default)")
            );
            println!("{}", self.table(&figures.phases).render());
            println!("left the virtual machine: {}\n", exits_line(&figures.vm_exits));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The page: every generator, Linux's total, the timeline, and sampled stacks.
    fn write_report(&self, machine: &Machine) -> Result<()> {
        let mut part = ProfilePart {
            about: format!(
                "{}: 500 execs of /bin/true under each generator, {} CPU(s) of {}, {}, QEMU {} ({}).",
                process::output(Command::new("date").args(["-u", "+%FT%TZ"]))?.trim(),
                self.machine.smp,
                self.machine.cpu,
                self.machine.memory(),
                qemu::version()?,
                if machine.accel == Accel::Kvm { "kvm" } else { "tcg" },
            ),
            command: "cargo xtask profile --report".into(),
            ..ProfilePart::default()
        };
        for generator in [Generator::Chacha20, Generator::Splitmix64, Generator::Rdrand] {
            let figures = self.measure(machine, Some(generator))?;
            part.generators.push(generator_part(generator, &figures)?);
            if generator == Generator::Chacha20 {
                part.timeline = timeline(&figures.output);
                part.vm_exits = figures.vm_exits;
            }
        }
        part.linux_total = Some(self.linux_total(machine)?);
        part.stacks = self.stacks(machine)?;
        println!("{}", paths::shown(&report::write_profile(&part)?));
        Ok(())
    }

    /// Nanoseconds that Linux takes for one fork, exec of /bin/true, exit and wait.
    fn linux_total(&self, machine: &Machine) -> Result<f64> {
        let bench = Bench::instructions_of(Kernel::Linux, "exec_true", 1, &self.machine);
        let spinner = term::spinner("execs on Linux");
        let both = bench.measure(machine)?;
        spinner.finish_and_clear();
        let samples = both[Kernel::Linux as usize].samples.get("exec_true");
        samples.and_then(|samples| samples.median()).context("Linux measured nothing")
    }

    /// Folded kernel stacks of a guest that does nothing but fork, exec and exit.
    fn stacks(&self, machine: &Machine) -> Result<Vec<String>> {
        let line = "console=ttyS0 quiet rdinit=/usr/lib/alea/profile alea.profile_loop";
        let machine = machine.clone().direct(paths::kernel(), Some(paths::initramfs()), line);
        let spinner = term::spinner("sampling stacks");
        let mut guest = Guest::start(&machine.in_place())?;
        guest.wait_for("profile: looping", Duration::from_secs(120))?;
        let samples = samples::take(&guest, SAMPLES)?;
        drop(guest);
        spinner.finish_and_clear();
        samples::fold(&paths::kernel(), &samples)
    }

    fn measure(&self, machine: &Machine, generator: Option<Generator>) -> Result<Figures> {
        let mut line = String::from("console=ttyS0 rdinit=/usr/lib/alea/profile");
        if let Some(generator) = generator {
            line.push_str(&format!(" random.generator={}", generator.name()));
        }
        let initrd = Some(paths::initramfs());
        let machine = machine.clone().direct(paths::kernel(), initrd, &line);
        let spinner = term::spinner("550 execs on Alea");
        let outcome = Guest::start(&machine)?.finish(Limits::idle(Duration::from_secs(60)));
        spinner.finish_and_clear();
        let outcome = outcome?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(&paths::kernel(), &outcome.output);
            let report = report.unwrap_or_else(|| outcome.stuck_at(&paths::kernel()));
            bail!("{}\n{report}", outcome.describe());
        }
        let phases = parse(&outcome.output).with_context(|| outcome.describe())?;
        let vm_exits = vm_exits(&outcome.output);
        let generator = generator.map(Generator::name);
        Ok(Figures { generator, phases, vm_exits, output: outcome.output })
    }

    /// Sets the figures that README shows.
    fn show(&self, phases: &[Phase]) -> Result<()> {
        let mut figures = shown::Figures::load(paths::root())?;
        for phase in phases {
            let cells = [
                ("average", table::time(phase.avg_ns)),
                ("min", table::time(phase.min_ns)),
                ("p99", table::time(phase.p99_ns)),
                ("% of exec", format!("{:.2}", phase.share_percent)),
            ];
            figures.set("profile", &phase.name, &cells)?;
        }
        figures.write(paths::root())
    }

    fn table(&self, phases: &[Phase]) -> Table {
        let figure = |value: f64| {
            if self.machine.icount { table::count(value) } else { table::time(value) }
        };
        let mut table =
            Table::new(&["phase", "count", "average", "min", "max", "p99", "% of exec"]);
        for phase in phases {
            table.row(vec![
                phase.name.clone(),
                phase.count.to_string(),
                figure(phase.avg_ns),
                figure(phase.min_ns),
                figure(phase.max_ns),
                figure(phase.p99_ns),
                format!("{:.2}", phase.share_percent),
            ]);
        }
        table
    }
}

/// How often the kernel is asked where it is.
const SAMPLES: usize = 400;

/// The lines between the guest's mark `profile: NAME` and the next mark.
fn between<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    let text = output.split(&format!("profile: {name}\n")).nth(1)?;
    Some(text.split("profile: ").next().unwrap_or(text))
}

/// What happened between the guest's two readings of /proc/alea/vm_exits.
fn vm_exits(output: &str) -> Vec<(String, u64)> {
    let read = |name: &str| -> Vec<(String, u64)> {
        let lines = between(output, name).unwrap_or("").lines();
        let pair = |line: &str| {
            let (kind, count) = line.split_once(' ')?;
            Some((kind.to_owned(), count.trim().parse().ok()?))
        };
        lines.filter_map(pair).collect()
    };
    let (before, after) = (read("exits before"), read("exits after"));
    let counts = before.into_iter().zip(after);
    counts.map(|((kind, from), (_, to))| (kind, to.saturating_sub(from))).collect()
}

fn exits_line(exits: &[(String, u64)]) -> String {
    let words: Vec<String> = exits.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    words.join(", ")
}

fn generator_part(generator: Generator, figures: &Figures) -> Result<GeneratorPart> {
    let total = figures.output.split("500 execs of /bin/true: ").nth(1);
    let total = total.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let steps = |name: &str| -> Vec<(f64, f64)> {
        let lines = between(&figures.output, "histogram").unwrap_or("").lines();
        let step = |line: &str| {
            let (phase, rest) = line.split_once(' ')?;
            let (upto, count) = rest.split_once(' ')?;
            (phase == name).then(|| Some((upto.parse().ok()?, count.trim().parse().ok()?)))?
        };
        lines.filter_map(step).collect()
    };
    let phase = |phase: &Phase| PhasePart {
        steps: steps(&phase.name),
        name: phase.name.clone(),
        avg: phase.avg_ns,
        p99: phase.p99_ns,
    };
    Ok(GeneratorPart {
        name: generator.name().into(),
        total: total.context("the guest did not say how long an exec took")? * 1000.0,
        phases: figures.phases.iter().map(phase).collect(),
    })
}

/// The lines of /proc/alea/exec_timeline.
fn timeline(output: &str) -> Vec<Event> {
    let event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [cpu, pid, phase, start, duration] = words[..] else { return None };
        Some(Event {
            cpu: cpu.parse().ok()?,
            pid: pid.parse().ok()?,
            phase: phase.to_owned(),
            start: start.parse().ok()?,
            duration: duration.parse().ok()?,
        })
    };
    between(output, "timeline").unwrap_or("").lines().filter_map(event).collect()
}

/// The table between the guest's two marks.
fn parse(output: &str) -> Result<Vec<Phase>> {
    let table = between(output, "begin").context("the guest printed no table")?;
    let phases: Vec<Phase> = table.lines().filter_map(phase).collect();
    if phases.is_empty() {
        bail!("the guest's table is empty");
    }
    Ok(phases)
}

/// One line of the table; the header is none.
fn phase(line: &str) -> Option<Phase> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, count, avg, min, max, p99, share] = words[..] else { return None };
    Some(Phase {
        name: name.to_owned(),
        count: count.parse().ok()?,
        avg_ns: avg.parse().ok()?,
        min_ns: min.parse().ok()?,
        max_ns: max.parse().ok()?,
        p99_ns: p99.parse().ok()?,
        share_percent: share.trim_end_matches('%').parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let output = "500 execs of /bin/true: 3130.6 us each\nprofile: begin\n\
            phase count avg_ns min_ns max_ns p99_ns share_percent\n\
            random 500 120 80 900 300 0.31\nelf_load 500 20000 18000 40000 30000 51.70\n\
            profile: end\nrandom 1 1 1 1 1 1\n";
        let phases = parse(output).unwrap();
        assert_eq!(phases.len(), 2);
        assert_eq!(phases[0].name, "random");
        assert_eq!((phases[0].count, phases[1].share_percent), (500, 51.7));
    }

    #[test]
    fn exits_are_what_came_between() {
        let output = "profile: exits before\nkind count\nport 930\ntimer 6\nprofile: exits after\n\
            kind count\nport 930\ntimer 17\nprofile: end\nprofile: timeline\n\
            cpu pid phase start_ns duration_ns\n0 12 fork 100 50\nprofile: end\n";
        assert_eq!(exits_line(&vm_exits(output)), "port 0, timer 11");
        assert_eq!(timeline(output).len(), 1);
    }

    #[test]
    fn a_missing_or_empty_table_is_an_error() {
        assert!(parse("nothing\n").is_err());
        assert!(parse("profile: begin\nprofile: end\n").is_err());
    }
}
