//! Samples for the assessment: a boot that shows them, and what it says.
//!
//! `alea.jitter_samples=N` has the kernel take samples where it takes those that it credits, show them on the serial line and
//! switch the machine off (`kernel/src/random/sources/assessed.rs`); `kernel/random/examples/raw_jitter.rs` does the same on
//! the host, as a program. Both print the same lines.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use xtask_guest::guest::{Guest, Limits};
use xtask_guest::qemu::Machine;
use xtask_host::{paths, process};

/// Without a byte from the guest for so long, it hangs. A million samples take seconds before the first is shown.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where samples come from.
pub enum Origin {
    /// A machine that QEMU plays.
    Guest(Machine),
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
            Self::Guest(_) => xtask_setup::build::kernel_alone(),
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

/// The lines `raw HEX` and the last one, `jitter shown N wider N taken N regular N` or `... refused: WHY`.
fn parse(output: &str) -> Option<Run> {
    let mut samples = Vec::new();
    for line in output.lines() {
        let line = line.trim_end();
        if let Some(hex) = line.strip_prefix("raw ") {
            for at in (0..hex.len()).step_by(2) {
                samples.push(u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?);
            }
        } else if let Some(rest) = line.strip_prefix("jitter shown ") {
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
