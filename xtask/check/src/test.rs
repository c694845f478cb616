//! `cargo xtask test`: sets up, builds, and runs every test there is.
//!
//! The pure crates, xtask and the tests that boot QEMU are all cargo tests; this makes their
//! artefacts first and adds up their results afterwards.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use xtask_host::tally::Tally;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// Runs the host tests and the tests that boot QEMU.
#[derive(Args, Default)]
pub struct Test {
    /// Arguments for `cargo test`, such as `-p alea-tests --test boot`, a name, or `-- --nocapture`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
    #[command(flatten)]
    build: build::Options,
}

impl Test {
    pub fn run(self) -> Result<ExitCode> {
        Ok(self.tally()?.conclude())
    }

    /// Runs the tests and counts; whatever keeps them from running is one failure.
    pub fn tally(self) -> Result<Tally> {
        setup::ensure(&setup::DEFAULT)?;
        setup::ensure(&[Need::Swtpm, Need::Ovmf, Need::Compressors, Need::Gdb])?;
        build::build(self.build)?;
        build::uefi_loader()?;
        let mut tally = Tally::default();
        tally.run(process::cargo().args(["test", "--no-fail-fast"]).args(&self.args))?;
        if self.args.is_empty() {
            for package in MODELLED {
                tally.run(&mut models(package))?;
            }
        }
        Ok(tally)
    }
}

/// The crates whose `tests/loom.rs` explores every interleaving of a lock-free protocol.
const MODELLED: [&str; 5] =
    ["alea-futexq", "alea-random", "alea-runq", "alea-sigq", "alea-waitlist"];

/// The loom models of `package`, built apart: `--cfg alea_loom` changes every crate.
fn models(package: &str) -> Command {
    let mut cargo = process::cargo();
    cargo
        .args(["test", "--release", "--no-fail-fast", "--package", package, "--test", "loom"])
        .env("RUSTFLAGS", "--cfg alea_loom")
        .env("CARGO_TARGET_DIR", paths::root().join("target/loom"));
    cargo
}
