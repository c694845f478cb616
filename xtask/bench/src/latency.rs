//! `cargo xtask latency`: how long a task of the highest priority waits while another user does the worst he may.
//!
//! The guest's `/usr/lib/alea/latency` is init: it naps with SCHED_FIFO 99 on one CPU beside one attack after the other. Guest
//! time is counted in instructions, so the figures repeat on a busy host; one is a nanosecond (docs/performance.md
//! says what that means in time).

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::MachineArgs;
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_host::table::{self, Table};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::shown;

/// One attack's guest seconds take a busy host minutes.
const SILENCE: Duration = Duration::from_secs(900);

/// The goal: what the victim may wait at most, in instructions. That is 10 ms of a quiet machine under TCG without
/// counting, which needs up to 7 ns for an instruction of the kernel (docs/performance.md).
pub const GOAL_NS: u64 = 1_400_000;

/// The goal itself, in time.
const TIMED_GOAL_NS: u64 = 10_000_000;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kernels {
    Alea,
    Linux,
    Both,
}

/// Measures how long a task of the highest priority waits while another user does the worst he may.
#[derive(Args)]
pub struct Latency {
    /// Which kernels are measured
    #[arg(long, value_enum, default_value = "both")]
    kernel: Kernels,
    /// How long each attack lasts, in the guest's milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300)]
    ms: u32,
    /// Only attacks whose names match one of these, separated by commas
    #[arg(long, value_name = "GLOB", default_value = "*")]
    only: String,
    /// Memory, as QEMU's -m takes it
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: String,
    /// In time instead of counted instructions: wants a machine that does nothing else
    #[arg(long, conflicts_with = "write_figures")]
    timed: bool,
    /// Write the table into docs/figures.toml and the page that shows it
    #[arg(long)]
    write_figures: bool,
}

impl Latency {
    pub fn run(self) -> Result<ExitCode> {
        let needs = [Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox, Need::Linux];
        setup::ensure(&needs)?;
        let [mut alea, mut linux] = [None, None];
        if self.kernel != Kernels::Linux {
            build::build(build::Options::default())?;
            alea = Some(self.boot(&paths::kernel())?);
        }
        if self.kernel != Kernels::Alea {
            build::initramfs()?;
            linux = Some(self.boot(&paths::vmlinuz())?);
        }
        print!("{}", render(alea.as_ref(), linux.as_ref()));
        if self.write_figures {
            write(alea.as_ref(), linux.as_ref())?;
        }
        let goal = if self.timed { TIMED_GOAL_NS } else { GOAL_NS };
        let late = alea.is_some_and(|alea| alea.worst() > goal);
        Ok(if late { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn boot(&self, kernel: &Path) -> Result<Latencies> {
        let args = MachineArgs {
            icount: !self.timed,
            memory: Some(self.memory.clone()),
            ..MachineArgs::default()
        };
        let line = command_line(&self.only, self.ms);
        let machine = args.machine()?.direct(kernel, Some(paths::programs_initramfs()), &line);
        let outcome =
            Guest::start_echoing(&machine, io::stderr())?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(kernel, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
        }
        match Latencies::read(&outcome.output) {
            Some(read) => Ok(read),
            None => bail!("the attacks did not come to their end\n{}", outcome.describe()),
        }
    }
}

/// The kernel command line for the attacks that match `only`, each for so many guest milliseconds.
pub fn command_line(only: &str, ms: u32) -> String {
    format!(
        "console=ttyS0 quiet rdinit=/usr/lib/alea/latency alea.latency={only} alea.latency_ms={ms}"
    )
}

/// What one attack did to the victim, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attack {
    pub name: String,
    pub worst: u64,
    pub p99: u64,
    /// The worst while the attacker prepared itself.
    pub preparing: u64,
    /// From SIGKILL to the last reaped process.
    pub killing: u64,
}

/// What a guest measured.
#[derive(Default)]
pub struct Latencies {
    pub attacks: Vec<Attack>,
    /// Attacks that the kernel refused, with the errno.
    pub skipped: Vec<(String, String)>,
    /// Of all samples together.
    pub p9999: u64,
}

impl Latencies {
    /// Reads what a guest printed, if it came to its end.
    pub fn read(output: &str) -> Option<Self> {
        let mut read = Self::default();
        let mut complete = false;
        for line in output.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["latency", name, worst, p99, _, preparing, killing, _] => {
                    read.attacks.push(Attack {
                        name: name.to_owned(),
                        worst: worst.parse().ok()?,
                        p99: p99.parse().ok()?,
                        preparing: preparing.parse().ok()?,
                        killing: killing.parse().ok()?,
                    });
                }
                ["latency-skip", name, why] => {
                    read.skipped.push((name.to_owned(), why.to_owned()));
                }
                ["latency-all", _, p9999, _, _] => read.p9999 = p9999.parse().ok()?,
                ["latency-end"] => complete = true,
                _ => {}
            }
        }
        complete.then_some(read)
    }

    /// The worst of all attacks, while they prepared themselves too.
    pub fn worst(&self) -> u64 {
        self.attacks.iter().map(|attack| attack.worst.max(attack.preparing)).max().unwrap_or(0)
    }

    fn of(&self, name: &str) -> Option<&Attack> {
        self.attacks.iter().find(|attack| attack.name == name)
    }
}

fn render(alea: Option<&Latencies>, linux: Option<&Latencies>) -> String {
    let mut table = Table::new(&[
        "attack",
        "Alea worst",
        "p99",
        "preparing",
        "killed in",
        "Linux worst",
        "p99",
        "preparing",
        "killed in",
    ]);
    let mut names: Vec<&str> = Vec::new();
    for attack in [alea, linux].into_iter().flatten().flat_map(|kernel| &kernel.attacks) {
        if !names.contains(&attack.name.as_str()) {
            names.push(&attack.name);
        }
    }
    for name in names {
        let mut row = vec![name.to_owned()];
        for kernel in [alea, linux] {
            match kernel.and_then(|kernel| kernel.of(name)) {
                Some(attack) => row.extend(
                    [attack.worst, attack.p99, attack.preparing, attack.killing]
                        .map(|ns| table::time(ns as f64)),
                ),
                None => row.extend(["-"; 4].map(str::to_owned)),
            }
        }
        table.row(row);
    }
    let mut text = table.render();
    for (name, kernel) in [("Alea", alea), ("Linux", linux)] {
        let Some(kernel) = kernel else { continue };
        let most = kernel.attacks.iter().max_by_key(|attack| attack.worst.max(attack.preparing));
        let (worst, p9999) = (table::time(kernel.worst() as f64), table::time(kernel.p9999 as f64));
        let by = most.map_or("nobody", |attack| &attack.name);
        text.push_str(&format!("{name}: worst {worst} ({by}), p99.99 {p9999}\n"));
        for (name, why) in &kernel.skipped {
            text.push_str(&format!("  {name}: refused with errno {why}\n"));
        }
    }
    text
}

/// Writes the figures into the page.
fn write(alea: Option<&Latencies>, linux: Option<&Latencies>) -> Result<()> {
    let mut figures = shown::Figures::load(paths::root())?;
    for (kernel, who) in [(alea, "Alea"), (linux, "Linux")] {
        for attack in kernel.map_or(&[][..], |kernel| &kernel.attacks) {
            let titles = ["worst", "p99", "killed in"].map(|what| format!("{who}, {what}"));
            let worst = attack.worst.max(attack.preparing);
            let times = [worst, attack.p99, attack.killing].map(|ns| table::time(ns as f64));
            let cells: Vec<(&str, String)> = titles.iter().map(String::as_str).zip(times).collect();
            figures.set_or_add("latency", &attack.name, &cells)?;
        }
    }
    figures.write(paths::root())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "latency mlock 3000 2000 100 5000 70000 -\nlatency-skip x 12\n\
                          latency brk 4000 2000 100 0 70000 died\nlatency-all 5000 4100 200 mlock\n";

    #[test]
    fn a_guest_that_did_not_end_is_no_result() {
        assert!(Latencies::read(OUTPUT).is_none());
    }

    #[test]
    fn the_time_of_preparation_counts() {
        let read = Latencies::read(&format!("{OUTPUT}latency-end\n")).unwrap();
        assert_eq!((read.worst(), read.p9999, read.attacks.len()), (5000, 4100, 2));
        assert_eq!(read.skipped, [("x".to_owned(), "12".to_owned())]);
        let text = render(Some(&read), None);
        assert!(text.contains("Alea: worst 5.00 us (mlock), p99.99 4.10 us"), "{text}");
    }
}
