//! The report: one page that shows what `bench --report` and `profile --report` measured.
//!
//! Each command writes its part of the data as JSON below `target/alea/report/`, and the page anew from
//! all parts that are there. The page needs no network and no other file.

mod chart;
mod command;
mod curves;
mod experiments;
mod files;
mod growth;
mod page;
mod picture;
pub mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use command::Report;
pub use experiments::{Call, ExperimentPart, ExperimentRow, ExperimentsPart, write_experiments};

use xtask_host::paths;

/// One of the two kernels' samples of one benchmark.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub samples: Vec<f64>,
}

/// One benchmark on both kernels.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    /// `ns`, `instructions` or `KiB`.
    pub unit: String,
    pub linux: Option<Spread>,
    pub alea: Option<Spread>,
    pub goal: Option<f64>,
}

impl Row {
    /// Alea's share of Linux's median.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.alea.as_ref()?.median / self.linux.as_ref()?.median)
    }
}

/// What one more costs when there are `n` already, or on `n` CPUs: `(n, cost)`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Curve {
    pub name: String,
    pub linux: Vec<(f64, f64)>,
    pub alea: Vec<(f64, f64)>,
    /// Where a kernel ended the curve.
    #[serde(default)]
    pub refused: Vec<Refusal>,
}

/// A size that a kernel refused.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Refusal {
    /// `linux` or `alea`.
    pub kernel: String,
    pub n: f64,
    /// An errno, or what else happened.
    pub why: String,
}

/// What `bench --report` measured.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct BenchPart {
    /// Date, host, QEMU, guest: a sentence.
    pub about: String,
    pub command: String,
    pub wall: Vec<Row>,
    pub instructions: Vec<Row>,
    pub growth: Vec<Curve>,
}

/// One phase of fork, exec, exit or wait.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct PhasePart {
    pub name: String,
    pub avg: f64,
    pub p99: f64,
    /// `(up to, how many)`, ascending.
    pub steps: Vec<(f64, f64)>,
}

/// The phases under one generator.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct GeneratorPart {
    pub name: String,
    /// Nanoseconds of one fork, exec, exit and wait, the program's own included.
    pub total: f64,
    pub phases: Vec<PhasePart>,
}

/// One event of the timeline.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Event {
    pub cpu: u32,
    pub pid: u32,
    pub phase: String,
    pub start: f64,
    pub duration: f64,
}

/// What `profile --report` measured.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ProfilePart {
    pub about: String,
    pub command: String,
    pub generators: Vec<GeneratorPart>,
    /// Nanoseconds of the same fork, exec, exit and wait on Linux.
    pub linux_total: Option<f64>,
    pub timeline: Vec<Event>,
    /// `(kind, how often in 500 execs)`.
    pub vm_exits: Vec<(String, u64)>,
    /// Folded stacks, `outer;inner count`.
    pub stacks: Vec<String>,
}

/// Writes `part` and the page; returns the page's path.
pub fn write_bench(part: &BenchPart) -> Result<PathBuf> {
    files::bench(&folder()?, part)?;
    let page = write_page(&folder()?)?;
    photograph(&page);
    Ok(page)
}

/// Writes `part` and the page; returns the page's path.
pub fn write_profile(part: &ProfilePart) -> Result<PathBuf> {
    files::profile(&folder()?, part)?;
    let page = write_page(&folder()?)?;
    photograph(&page);
    Ok(page)
}

fn folder() -> Result<PathBuf> {
    let folder = paths::alea().join("report");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The page of whatever parts `folder` has.
fn write_page(folder: &Path) -> Result<PathBuf> {
    let bench: Option<BenchPart> = files::read(&folder.join(files::BENCH))?;
    let profile: Option<ProfilePart> = files::read(&folder.join(files::PROFILE))?;
    let page = folder.join("index.html");
    let html =
        page::render(bench.as_ref(), profile.as_ref(), folder.join(experiments::FOLDER).exists())?;
    fs::write(&page, html).with_context(|| page.display().to_string())?;
    Ok(page)
}

/// Pictures of the page, where Chromium is installed.
fn photograph(page: &Path) {
    if !picture::is_possible() {
        return;
    }
    let folder = page.parent().unwrap_or(Path::new("."));
    let html = fs::read_to_string(page).context("the page");
    if let Err(error) = html.and_then(|html| picture::take(&html, folder)) {
        eprintln!("note: {error:#}");
    }
}
