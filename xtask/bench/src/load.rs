//! `cargo xtask load`: how each kernel shares its CPUs among many: messages between hundreds, wake-ups beside programs that compute, shares.
//!
//! The guest's `/usr/lib/alea/load` is init and says what each kind measures; of every number less is better. Boots are interleaved and
//! the medians compared. In time this wants a host with nothing else to do; `--icount` repeats on any, with one CPU.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};

use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::MachineArgs;
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_host::table::{self, Table};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::shown;

/// A kind's guest seconds take a busy host minutes.
const SILENCE: Duration = Duration::from_secs(900);

/// What a share is off by is told in a hundred, and so much of it is no difference between kernels: a second has few slices.
const OFF: &str = "off";
const OFF_ALLOWED: f64 = 5.0;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kernels {
    Alea,
    Linux,
    Both,
}

/// Measures how each kernel shares its CPUs among many.
#[derive(Args)]
pub struct Load {
    /// Only kinds whose names match one of these, separated by commas: `kinds` in `userland/load/load.c`
    #[arg(value_name = "GLOBS", default_value = "*")]
    only: String,
    /// Which kernels are measured
    #[arg(long, value_enum, default_value = "both")]
    kernel: Kernels,
    /// Boots of each kernel
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// How long a kind lasts that has no other end, in the guest's milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    ms: u32,
    /// Write the table into docs/figures.toml and the page that shows it
    #[arg(long)]
    write_figures: bool,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Load {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox, Need::Linux])?;
        let mut kernels: Vec<(PathBuf, Vec<Numbers>)> = Vec::new();
        if self.kernel != Kernels::Linux {
            build::build(self.build)?;
            kernels.push((paths::kernel(), Vec::new()));
        }
        if self.kernel != Kernels::Alea {
            build::initramfs()?;
            kernels.push((paths::vmlinuz(), Vec::new()));
        }
        for _ in 0..self.runs {
            for (kernel, runs) in &mut kernels {
                runs.push(self.boot(kernel)?);
            }
        }
        let mut medians =
            kernels.iter().map(|(_, runs)| median(runs)).collect::<Result<Vec<_>>>()?;
        let linux = (self.kernel != Kernels::Alea).then(|| medians.pop()).flatten();
        let alea = medians.pop();
        print!("{}", render(alea.as_ref(), linux.as_ref()));
        let (Some(alea), Some(linux)) = (alea, linux) else { return Ok(ExitCode::SUCCESS) };
        if self.write_figures {
            self.write(&alea, &linux)?;
        }
        let worse = worse(&alea, &linux);
        if !worse.is_empty() {
            println!("worse than on Linux: {}", worse.join(", "));
        }
        Ok(if worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn boot(&self, kernel: &Path) -> Result<Numbers> {
        let line = command_line(&self.only, self.ms, self.machine.icount);
        let machine =
            self.machine.machine()?.direct(kernel, Some(paths::programs_initramfs()), &line);
        let outcome =
            Guest::start_echoing(&machine, io::stderr())?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(kernel, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
        }
        read(&outcome.output)
    }

    /// Writes the figures into the page: a column for each number of CPUs.
    fn write(&self, alea: &Numbers, linux: &Numbers) -> Result<()> {
        let cpus = self.machine.smp;
        let mut figures = shown::Figures::load(paths::root())?;
        for (row, of_linux) in linux {
            let Some(of_alea) = alea.get(row) else { continue };
            let [linux, alea] = [of_linux, of_alea].map(|number| shown_as(row, *number));
            let titles = ["Linux", "Alea"]
                .map(|who| format!("{who}, {cpus} CPUs").replace("1 CPUs", "1 CPU"));
            let cells = [(titles[0].as_str(), linux), (titles[1].as_str(), alea)];
            figures.set_or_add("load", row, &cells)?;
        }
        figures.write(paths::root())
    }
}

/// The kernel command line for the kinds that match `only`, each for so many guest milliseconds, in time or counted.
pub fn command_line(only: &str, ms: u32, is_counted: bool) -> String {
    // Counted time is a thousand million instructions a second. Left to find that out, Linux is wrong by half at times.
    let clock = if is_counted { " tsc_early_khz=1000000" } else { "" };
    format!(
        "console=ttyS0 quiet{clock} rdinit=/usr/lib/alea/load alea.load={only} alea.load_ms={ms}"
    )
}

/// What one boot measured: `KIND: WHAT` and its number, of which less is better.
pub type Numbers = BTreeMap<String, f64>;

/// Reads what a guest printed, if it came to its end.
///
/// # Errors
/// A line that is none, what failed there, or no end.
pub fn read(output: &str) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["load", kind, what, number] => {
                numbers.insert(format!("{kind}: {what}"), number.parse()?);
            }
            ["load-end"] => return Ok(numbers),
            ["load-failed", ..] => bail!("{line}"),
            _ => {}
        }
    }
    bail!("the guest did not come to its end:\n{output}")
}

/// The median of each number.
fn median(runs: &[Numbers]) -> Result<Numbers> {
    let mut medians = Numbers::new();
    let Some(first) = runs.first() else { return Ok(medians) };
    for row in first.keys() {
        let mut all: Vec<f64> = runs.iter().filter_map(|run| run.get(row).copied()).collect();
        ensure!(all.len() == runs.len(), "{row}: not in every boot");
        all.sort_by(f64::total_cmp);
        medians.insert(row.clone(), all[all.len() / 2]);
    }
    Ok(medians)
}

fn is_share(row: &str) -> bool {
    row.ends_with(OFF)
}

fn shown_as(row: &str, number: f64) -> String {
    if is_share(row) { format!("{number:.1} %") } else { table::time(number) }
}

/// The rows in which Alea's number is above Linux's.
pub fn worse(alea: &Numbers, linux: &Numbers) -> Vec<String> {
    let is_worse = |row: &str, alea: f64, linux: f64| {
        if is_share(row) { alea > linux + OFF_ALLOWED } else { alea > linux }
    };
    let rows = alea.iter().filter(|(row, number)| {
        linux.get(*row).is_some_and(|linux| is_worse(row, **number, *linux))
    });
    rows.map(|(row, _)| row.clone()).collect()
}

fn render(alea: Option<&Numbers>, linux: Option<&Numbers>) -> String {
    let mut table = Table::new(&["load", "Linux", "Alea", "ratio"]);
    let rows = alea.or(linux).map(|numbers| numbers.keys()).into_iter().flatten();
    for row in rows {
        let of = |kernel: Option<&Numbers>| kernel.and_then(|kernel| kernel.get(row)).copied();
        let (of_linux, of_alea) = (of(linux), of(alea));
        let cell = |number: Option<f64>| number.map_or("-".to_owned(), |it| shown_as(row, it));
        let ratio =
            of_linux.zip(of_alea).filter(|_| !is_share(row)).map(|(linux, alea)| alea / linux);
        let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        table.row(vec![row.clone(), cell(of_linux), cell(of_alea), ratio]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "load a p99 2000.0\nload a pass 10.0\nload s off 3.0\n";

    #[test]
    fn a_guest_that_did_not_end_is_no_result() {
        assert!(read(OUTPUT).is_err());
        assert!(read("load a p99 2.0\nload-failed fork: errno 11\nload-end\n").is_err());
        assert!(read("load a p99 x\nload-end\n").is_err());
    }

    #[test]
    fn less_is_better() {
        let of = |text: &str| read(&format!("{text}load-end\n")).unwrap();
        let linux = of(OUTPUT);
        assert!(worse(&linux, &linux).is_empty());
        let alea = of("load a p99 2001.0\nload a pass 9.0\nload s off 7.9\n");
        assert_eq!(worse(&alea, &linux), ["a: p99"]);
        assert_eq!(worse(&of("load s off 8.1\n"), &linux), ["s: off"]);
        assert!(render(Some(&alea), Some(&linux)).contains("0.900"));
    }

    #[test]
    fn medians_want_every_boot() {
        let of = |number: f64| Numbers::from([("a".to_owned(), number)]);
        assert_eq!(median(&[of(3.0), of(1.0), of(2.0)]).unwrap(), of(2.0));
        assert!(median(&[of(1.0), Numbers::new()]).is_err());
    }
}
