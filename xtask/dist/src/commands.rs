//! The command of `cargo xtask` for releases. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::dist;

#[derive(Subcommand)]
pub enum Command {
    /// Make a release: kernel, symbols, initramfs, ISO, checksums, bill of materials
    Dist(dist::Dist),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Dist(c) => c.run(),
        }
    }
}
