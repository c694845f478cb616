//! `cargo xtask trace` for the tests, which build nothing: the same options, the same library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use xtask_check::trace::Traced;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    traced: Traced,
}

fn main() -> ExitCode {
    match Cli::parse().traced.run() {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            xtask_run::FAILED.into()
        }
    }
}
