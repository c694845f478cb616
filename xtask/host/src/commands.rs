//! What the programs behind `cargo xtask` share: the command line is parsed, and what a command fails with is said.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Build, boot, test and measure Alea",
    version
)]
struct Cli<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// Runs the command that this program's arguments name. The exit status is the command's own, or 1 for an error.
pub fn main<C: Subcommand>(run: fn(C) -> Result<ExitCode>) -> ExitCode {
    run(Cli::<C>::parse().command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
