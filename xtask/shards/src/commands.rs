//! The command of `cargo xtask` for results of several machines. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::merge;

#[derive(Subcommand)]
pub enum Command {
    /// Make one report of what several machines found, each with its part of the work
    Merge(merge::Merge),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Merge(c) => c.run(),
        }
    }
}
