//! Samples for the assessment: a boot that shows them, and what it says.
//!
//! `alea.jitter_samples=N` has the kernel take samples where it takes those that it credits, show them on the serial line and
//! switch the machine off (`kernel/src/random/sources/assessed.rs`); `kernel/random/examples/raw_jitter.rs` does the same on
//! the host, as a program. `alea.interrupt_samples=N` has it wait for interrupts of devices, and the serial port's come when
//! somebody types. All print the same lines.

use std::fmt;
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use xtask_guest::guest::{Guest, Limits};
use xtask_guest::qemu::Machine;
use xtask_host::{paths, process};

/// Without a byte from the guest for so long, it hangs. A million samples take seconds before the first is shown, of interrupts
/// minutes.
const PATIENCE: Duration = Duration::from_secs(1800);

/// What a guest says when it is ready for interrupts, and how soon.
const WANTED: &str = "interrupts wanted";
const BOOT: Duration = Duration::from_secs(120);

/// Where samples come from.
pub enum Origin {
    /// The jitter of a machine that QEMU plays.
    Guest(Machine),
    /// The interrupts of its serial port, on which this program types.
    Interrupts(Machine),
    /// This machine, by a program under its operating system.
    Host,
}

/// What one collection came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// So many samples were taken for the credit, of which so many were too regular to count.
    Credited { taken: u32, regular: u32 },
    /// The health tests refused the source, and nothing is credited.
    Refused(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credited { taken, regular } => {
                write!(f, "credited; {} of {taken} samples counted", taken - regular)
            }
            Self::Refused(why) => write!(f, "no credit: {why}"),
        }
    }
}

/// One run of consecutive samples.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    /// The low eight bits of each sample.
    pub samples: Vec<u8>,
    /// Samples that had more than eight bits.
    pub wider: u32,
    pub end: End,
}

impl Origin {
    /// One start of the source and its first `count` samples; fewer where the health tests refuse it before.
    pub fn run(&self, count: u32) -> Result<Run> {
        let output = match self {
            Self::Guest(machine) => {
                let line = format!("console=ttyS0 quiet alea.jitter_samples={count}");
                let machine = machine.clone().direct(paths::kernel(), None, &line);
                Guest::start(&machine)?.finish(Limits::idle(PATIENCE))?.powered_off()?.output
            }
            Self::Interrupts(machine) => typed_at(machine, count)?,
            Self::Host => process::output(Command::new(program()).arg(count.to_string()))?,
        };
        let run = parse(&output).with_context(|| format!("no samples in:\n{output}"))?;
        if matches!(run.end, End::Credited { .. }) && run.samples.len() != count as usize {
            bail!("{} samples came, {count} were asked for", run.samples.len());
        }
        Ok(run)
    }

    /// Builds what the samples are taken with.
    pub fn prepare(&self) -> Result<()> {
        match self {
            Self::Guest(_) | Self::Interrupts(_) => xtask_setup::build::kernel_alone(),
            Self::Host => {
                let mut cargo = process::cargo();
                cargo.args(["build", "--quiet", "--release", "--package", "alea-random"]);
                cargo.args(["--example", "raw_jitter"]);
                process::run("building the sampler", &mut cargo)
            }
        }
    }
}

fn program() -> std::path::PathBuf {
    paths::source("target/release/examples/raw_jitter")
}

/// The output of a guest that shows `count` samples of interrupts, typed at a byte at a time, as fast as it takes them, until
/// it has enough.
fn typed_at(machine: &Machine, count: u32) -> Result<String> {
    let line = format!("console=ttyS0 quiet alea.interrupt_samples={count}");
    let mut guest = Guest::start(&machine.clone().direct(paths::kernel(), None, &line))?;
    guest.wait_for(WANTED, BOOT)?;
    let mut keys = guest.take_stdin().context("the serial line is not open for typing")?;
    // Ends with the guest, whose end is the pipe's.
    let typist = thread::spawn(move || while keys.write_all(b"a").is_ok() {});
    let outcome = guest.finish(Limits::idle(PATIENCE));
    typist.join().map_err(|_| anyhow!("the thread that typed went wrong"))?;
    Ok(outcome?.powered_off()?.output)
}

/// The lines `raw HEX` and the last one, `jitter shown N wider N taken N regular N` (or `interrupts`) or `... refused: WHY`.
fn parse(output: &str) -> Option<Run> {
    let mut samples = Vec::new();
    for line in output.lines() {
        let line = line.trim_end();
        if let Some(hex) = line.strip_prefix("raw ") {
            for at in (0..hex.len()).step_by(2) {
                samples.push(u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?);
            }
        } else if let Some(rest) =
            ["jitter shown ", "interrupts shown "].iter().find_map(|what| line.strip_prefix(what))
        {
            let (numbers, refused) = match rest.split_once(" refused: ") {
                Some((numbers, why)) => (numbers, Some(why.to_owned())),
                None => (rest, None),
            };
            let number = |name: Option<&str>| {
                let mut words =
                    numbers.split(' ').skip_while(|word| name.is_some_and(|n| *word != n));
                words.nth(usize::from(name.is_some()))?.parse::<u32>().ok()
            };
            let shown = number(None)?;
            let end = match refused {
                Some(why) => End::Refused(why),
                None => {
                    let (taken, regular) = (number(Some("taken"))?, number(Some("regular"))?);
                    (regular <= taken).then_some(End::Credited { taken, regular })?
                }
            };
            let whole = samples.len() == shown as usize;
            return whole.then_some(Run { samples, wider: number(Some("wider"))?, end });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_boot_says_is_read() {
        let output = "Booting from ROM..\r\nraw 00ff\r\nraw 10\r\n\
                      jitter shown 3 wider 2 taken 2048 regular 1030\r\n";
        let end = End::Credited { taken: 2048, regular: 1030 };
        assert_eq!(parse(output), Some(Run { samples: vec![0, 255, 16], wider: 2, end }));
        let output = "raw 0b\ninterrupts shown 1 wider 1 taken 3072 regular 1025\n";
        let end = End::Credited { taken: 3072, regular: 1025 };
        assert_eq!(parse(output), Some(Run { samples: vec![11], wider: 1, end }));
        let output = "raw 07\njitter shown 1 wider 0 refused: the source repeats\n";
        let end = End::Refused("the source repeats".to_owned());
        assert_eq!(parse(output), Some(Run { samples: vec![7], wider: 0, end }));
    }

    #[test]
    fn lost_bytes_are_noticed() {
        assert_eq!(parse("raw 00ff\njitter shown 3 wider 2 taken 2048 regular 1030\n"), None);
        assert_eq!(parse("raw 00f\njitter shown 2 wider 2 taken 2048 regular 1030\n"), None);
        assert_eq!(parse("raw 00ff\n"), None);
    }
}
