//! The commands of `cargo xtask` for setting up and building. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::{build, setup};

#[derive(Subcommand)]
pub enum Command {
    /// Install what is missing: Rust's bare-metal target, QEMU, a C compiler, BusyBox, Linux
    Setup(setup::Setup),
    /// Build the kernel and the initramfs into target/alea/
    Build(build::Build),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Setup(c) => c.run(),
            Self::Build(c) => c.run(),
        }
    }
}
