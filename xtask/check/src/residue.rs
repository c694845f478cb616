//! `cargo xtask residue`: what a draw leaves behind, looked for at the instruction after it.

pub mod devices;
pub mod fresh;
pub mod keys;
pub mod machine;
pub mod reading;
pub mod search;
pub mod wipes;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use xtask_host::paths;
use xtask_host::tally::Tally;

use reading::{Boot, read};

/// How many findings are shown.
const SHOWN: usize = 40;

/// Stops a machine after each draw, and searches its memory and its registers for what was drawn and for keys
#[derive(Args)]
pub struct Residue {
    /// Only these interfaces (see userland/random/residue.c); all if none is named
    interfaces: Vec<String>,
    /// Number of CPUs, each of which draws in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    smp: u32,
    /// Leave out each wipe of tests/residue/wipes.toml in turn: something must be found then
    #[arg(long)]
    wipes: bool,
    /// Only wipes whose file or line contains this
    #[arg(long, value_name = "TEXT", requires = "wipes")]
    only: Option<String>,
}

impl Residue {
    pub fn run(self) -> Result<ExitCode> {
        if self.wipes {
            let mut tally = Tally::default();
            wipes::check(&mut tally, self.only.as_deref())?;
            return Ok(tally.conclude());
        }
        let start = Instant::now();
        let (kernel, interfaces) = (paths::kernel(), &self.interfaces);
        let boot = Boot { kernel: &kernel, cpus: self.smp, interfaces, cpu: None, switch: None };
        let reading = read(&boot, SHOWN)?;
        reading.findings.iter().for_each(|finding| println!("{finding}"));
        println!(
            "{} stops, {} bytes drawn, {} given by devices, at most {} candidates for a key at once, {:.1} s: {}",
            reading.stops,
            reading.drawn,
            reading.given,
            reading.candidates,
            start.elapsed().as_secs_f32(),
            match reading.findings.len() {
                0 => "nothing is left behind".to_owned(),
                count => format!("{count} findings"),
            }
        );
        Ok(ExitCode::from(u8::from(!reading.findings.is_empty())))
    }
}
