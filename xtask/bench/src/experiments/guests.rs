//! Boots both kernels for an experiment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::Done;
use super::articles::{Experiment, Way};
use super::outcome::Outcome;
use crate::bench::SETTLE;
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::MachineArgs;
use xtask_guest::symbolize;
use xtask_host::{paths, process};

/// A rung of a million calls says nothing while it is climbed; hosts are busy.
const SILENCE: Duration = Duration::from_secs(1800);

/// How the experiments are done.
pub struct Boots<'a> {
    pub scale: f64,
    /// Cycles.
    pub rdrand_cost: u64,
    pub machine: &'a MachineArgs,
}

impl Boots<'_> {
    /// Does one on Linux, and on Alea in each of its ways.
    pub fn both(&self, experiment: &Experiment) -> Result<Done> {
        let initrd = initramfs(experiment)?;
        let linux = self.boot(experiment, &initrd, None)?;
        let mut alea = Vec::new();
        for way in experiment.ways {
            alea.push((way.title, self.boot(experiment, &initrd, Some(way))?));
        }
        Ok(Done { name: experiment.name, linux, alea })
    }

    fn boot(&self, experiment: &Experiment, initrd: &Path, way: Option<&Way>) -> Result<Outcome> {
        let (who, file) =
            way.map_or(("Linux", paths::vmlinuz()), |way| (way.title, paths::kernel()));
        let settle = if way.is_none() && self.machine.icount { SETTLE } else { 0 };
        eprintln!("{}: {who} ...", experiment.name);
        let mut line = format!(
            "console=ttyS0 quiet panic=-1 rdinit=/usr/lib/alea/{} experiment.scale={} \
             experiment.settle={settle}",
            experiment.program, self.scale
        );
        if let Some(way) = way {
            if let Some(generator) = way.generator {
                line.push_str(&format!(" random.generator={}", generator.name()));
            }
            if way.taxed {
                line.push_str(&format!(" alea.rdrand_cost={}", self.rdrand_cost));
            }
        }
        let machine = self.machine.machine()?.direct(&file, Some(initrd.to_path_buf()), &line);
        let outcome =
            Guest::start_echoing(&machine, io::stderr())?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(&file, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(&file)));
        }
        let found = Outcome::read(&outcome.output).with_context(|| outcome.describe())?;
        for (fact, expected) in experiment.facts {
            let holds = found.facts.get(*fact);
            ensure!(holds == Some(expected), "{fact} on {who}: {holds:?}");
        }
        Ok(found)
    }
}

/// The guest's files: those that all have, and behind them an archive with the Go program.
fn initramfs(experiment: &Experiment) -> Result<PathBuf> {
    let all = paths::programs_initramfs();
    let Some((folder, inside)) = experiment.go else { return Ok(all) };
    let into = paths::alea().join("experiments");
    fs::create_dir_all(&into)?;
    let binary = into.join(experiment.name);
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-o"]).arg(&binary).arg(".");
    go.current_dir(paths::source(folder)).env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local");
    process::run(&format!("building {folder}"), &mut go)?;
    let mut archive = fs::read(&all).with_context(|| paths::shown(&all))?;
    let mut tree = Tree::new();
    tree.host_file(inside, 0o755, &binary)?;
    archive.extend(tree.archive());
    let both = into.join(format!("{}.cpio", experiment.name));
    fs::write(&both, archive).with_context(|| paths::shown(&both))?;
    Ok(both)
}
