//! `cargo xtask run --root` for the tests, which build nothing: the same options, the same library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use xtask_check::run;
use xtask_run::options::RunOptions;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: RunOptions,
}

fn main() -> ExitCode {
    run::own_root(Cli::parse().options)
}
