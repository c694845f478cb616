//! The commands of `cargo xtask` for the house rules and generated pages. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::{syscalls, tidy};

#[derive(Subcommand)]
pub enum Command {
    /// Write docs/abi.md from the system-call table
    Syscalls(syscalls::Syscalls),
    /// Check the house rules
    Tidy(tidy::Tidy),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Syscalls(c) => c.run(),
            Self::Tidy(c) => c.run(),
        }
    }
}
