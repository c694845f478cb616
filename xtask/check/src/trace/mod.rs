//! `cargo xtask trace`: a guest program on a timeline, with a row for each CPU and each task, for ui.perfetto.dev.
//!
//! Boots as `cargo xtask run` does, runs the program below `alea-trace -R`, and makes the timeline of what that wrote.

pub mod records;
pub mod timeline;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use records::Recording;
use xtask_host::paths;
use xtask_run::options::RunOptions;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// The tool, where Alea's own root has it, and where it is laid over others.
const TOOL: &str = "/usr/lib/alea/alea-trace";

/// Where it writes in the guest.
const RECORDS: &str = "/.alea-trace/records";

/// Runs a program in the guest with all tracepoints on, and writes a timeline that ui.perfetto.dev opens; ends with the program's
/// exit status.
#[derive(Args)]
pub struct Trace {
    #[command(flatten)]
    traced: Traced,
    #[command(flatten)]
    build: build::Options,
}

/// What is traced and where it is written.
#[derive(Args)]
pub struct Traced {
    /// Where the timeline is written
    #[arg(long, short, value_name = "FILE", default_value = "target/alea/trace.json")]
    pub output: PathBuf,
    /// What is recorded, of: calls, switch, wakeup, fault, phase, draw, reseed, lock, fork, exec, exit
    #[arg(long, value_name = "POINTS")]
    #[arg(default_value = "calls,switch,wakeup,fault,phase,draw,reseed,lock,fork,exec,exit")]
    pub points: String,
    /// Each CPU's ring
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    pub ring: u32,
    #[command(flatten)]
    pub own: RunOptions,
}

impl Trace {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        build::build(self.build)?;
        self.traced.run().map(ExitCode::from)
    }
}

impl Traced {
    /// Runs the program, and writes the timeline. What is built must be there.
    pub fn run(mut self) -> Result<u8> {
        ensure!(!self.own.command.is_empty(), "no program: cargo xtask trace -- PROGRAM...");
        ensure!(
            self.own.initrd.is_none() && self.own.init.is_none(),
            "only below a root, or on Alea's own"
        );
        ensure!(self.own.kernel == "alea", "only Alea has the records");
        let folder = tempfile::Builder::new().prefix("alea-trace-").tempdir()?;
        if self.own.root.is_some() {
            self.own.overlay.push(overlay(folder.path())?);
        }
        let came = folder.path().join("out");
        let within = Path::new(RECORDS).parent().context("records below a folder")?;
        self.own.out.push(format!("{}:{}", within.display(), came.display()));
        let ring = self.ring.to_string();
        // Root sees all tasks, others their own.
        let whom = if self.own.user.is_some() { "-f" } else { "-a" };
        let tool = [TOOL, "-R", RECORDS, whom, "-b", &ring, "-p", &self.points, "--"];
        let program = std::mem::take(&mut self.own.command);
        self.own.command = tool.iter().map(Into::into).chain(program).collect();
        let status = self.own.run()?;
        let bytes = fs::read(came.join("records")).context("the guest wrote no records")?;
        write(&self.output, &Recording::parse(&bytes)?)?;
        Ok(status)
    }
}

fn write(output: &Path, recording: &Recording) -> Result<()> {
    let (json, lost) = timeline::timeline(recording, &call_names()?);
    let shown = paths::shown(output);
    let text = serde_json::to_string(&json)?;
    fs::write(output, text).with_context(|| format!("cannot write {shown}"))?;
    eprintln!("{shown}: {} records; open it in https://ui.perfetto.dev", recording.records.len());
    if lost > 0 {
        eprintln!("warning: {lost} records were lost: --ring makes room for more");
    }
    Ok(())
}

/// A folder with the tool in its place.
fn overlay(folder: &Path) -> Result<PathBuf> {
    let overlay = folder.join("overlay");
    let place = overlay.join(TOOL.trim_start_matches('/'));
    fs::create_dir_all(place.parent().context("the tool is in a folder")?)?;
    fs::copy(paths::program("alea-trace"), &place)?;
    Ok(overlay)
}

/// The names of system calls, from the kernel's table.
fn call_names() -> Result<BTreeMap<u32, String>> {
    let table = fs::read_to_string(paths::source("kernel/src/syscall/table.rs"))?;
    let row = |line: &str| {
        let (number, name) = line.trim().split_once(" => ")?.0.split_once(' ')?;
        Some((number.parse().ok()?, name.to_owned()))
    };
    Ok(table.lines().filter_map(row).collect())
}
