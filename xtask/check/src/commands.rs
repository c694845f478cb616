//! The commands of `cargo xtask` for boots and tests of our own. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::{
    abi, adopters, boot, debug, exhaust, fuzz, image, mutants, proofs, residue, run, snapshots,
    soak, test, trace, twins,
};

#[derive(Subcommand)]
pub enum Command {
    /// Boot Alea to a shell; with no terminal, play a demonstration and power off
    Run(Box<run::Run>),
    /// Run a program with the tracepoints on, and write a timeline of it
    Trace(Box<trace::Trace>),
    /// Boot any kernel and initramfs, on any CPU model and number of CPUs
    Boot(boot::Boot),
    /// Start a machine that stands, and gdb with the kernel's types and commands of its own
    Debug(debug::Debug),
    /// Run the host tests and the tests that boot QEMU
    Test(test::Test),
    /// Run the ABI programs of tests/abi, and compare with what Linux printed
    Abi(abi::Abi),
    /// Run everything at once, on several CPUs, for a while
    Soak(soak::Soak),
    /// Let a user take all he can get of one kind of object after the other
    Exhaust(exhaust::Exhaust),
    /// Throw random and hostile system calls at the kernel
    Fuzz(fuzz::Fuzz),
    /// Check alea-random as its adopters use it: features, oldest Rust, architectures, package, interface
    Crate(adopters::Crate),
    /// Stop after each draw, and search memory and registers for what was drawn
    Residue(residue::Residue),
    /// Change the entropy core in every way there is, and want a test to fail each time
    Mutants(mutants::Mutants),
    /// Prove again what is proven of the entropy core
    Proofs(proofs::Proofs),
    /// Boot a machine without entropy twice, attack it, and compare all bytes that it gave
    Twins(twins::Twins),
    /// Save the machine at every instruction of draws and reseeds, and compare twins of each snapshot
    Snapshots(snapshots::Snapshots),
    /// Make a bootable ISO with Limine
    Image(image::Image),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Run(c) => c.run(),
            Self::Trace(c) => c.run(),
            Self::Boot(c) => c.run(),
            Self::Debug(c) => c.run(),
            Self::Test(c) => c.run(),
            Self::Abi(c) => c.run(),
            Self::Soak(c) => c.run(),
            Self::Exhaust(c) => c.run(),
            Self::Fuzz(c) => c.run(),
            Self::Crate(c) => c.run(),
            Self::Residue(c) => c.run(),
            Self::Mutants(c) => c.run(),
            Self::Proofs(c) => c.run(),
            Self::Twins(c) => c.run(),
            Self::Snapshots(c) => c.run(),
            Self::Image(c) => c.run(),
        }
    }
}
