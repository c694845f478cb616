//! The table of docs/testing.md that says how each unit ended on both kernels: what `--write-figures` measured.
//!
//! A row is written as soon as its unit has ended, so that who stops the run keeps what there is.

use std::process::Command;

use anyhow::{Context, Result};
use xtask_host::paths;
use xtask_tidy::shown::Figures;

use super::{Ran, seconds};

const TABLE: &str = "debian";

/// Writes the row of `unit` into docs/figures.toml and the page.
pub fn write(unit: &str, linux: &Ran, alea: &Ran, ended_alike: &str) -> Result<()> {
    let mut figures = Figures::load(paths::root())?;
    let date = Command::new("date").args(["-u", "+%F"]).output().context("date")?;
    let cells = [
        ("Linux", linux.verdict()),
        ("Alea", ended_alike.to_owned()),
        ("CPU s Linux", seconds(linux.cpu)),
        ("CPU s Alea", seconds(alea.cpu)),
        ("Alea / Linux", ratio(linux, alea)),
        ("date", String::from_utf8_lossy(&date.stdout).trim().to_owned()),
    ];
    figures.set_or_add(TABLE, unit, &cells)?;
    figures.write(paths::root())
}

/// How much of Linux's CPU time the unit took on Alea.
pub fn ratio(linux: &Ran, alea: &Ran) -> String {
    format!("{:.2}", alea.cpu.as_secs_f64() / linux.cpu.as_secs_f64())
}
