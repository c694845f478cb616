//! `cargo xtask runs`: tries each row of `docs/runs.toml`, and prints what runs and what does not.
//!
//! A row that turns out otherwise than the file says fails, on Alea. On Linux everything must work but what the file excuses: a
//! script that fails there too says nothing about Alea.

mod debian;
mod tries;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use tries::{Boots, Verdicts};
use xtask_guest::qemu::MachineArgs;
use xtask_host::paths;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};
use xtask_tidy::runs::{self, Row};

/// Tries what README says runs on Alea, and what it says does not.
#[derive(Args)]
pub struct Runs {
    /// Only rows in whose names one of these words is
    names: Vec<String>,
    /// Try the rows of Debian's packages too: a root of 2 GB is made by mmdebstrap once, a few minutes
    #[arg(long)]
    debian: bool,
    /// On `alea` or `linux`
    #[arg(long, value_name = "alea|linux", default_value = "alea")]
    kernel: String,
    #[command(flatten)]
    build: build::Options,
}

impl Runs {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        let kernel = match self.kernel.as_str() {
            "alea" => Kernel::Alea,
            "linux" => Kernel::Linux,
            other => bail!("--kernel takes alea or linux, not {other}"),
        };
        if kernel == Kernel::Linux {
            setup::ensure(&[Need::Linux])?;
        }
        build::build(self.build)?;
        let mut rows = runs::load(paths::root())?;
        let all = debian::packages(&rows);
        rows.retain(|row| {
            self.names.is_empty() || self.names.iter().any(|name| row.name.contains(name))
        });
        let (debian, small): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| !row.packages.is_empty());
        let mut wrong = report(kernel, &small, &in_busybox(kernel, &small)?);
        if self.debian {
            wrong += report(
                kernel,
                &debian,
                &debian::tried(
                    kernel,
                    &debian,
                    &all.iter().map(String::as_str).collect::<Vec<_>>(),
                )?,
            );
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    Alea,
    Linux,
}

impl Kernel {
    fn image(self) -> std::path::PathBuf {
        match self {
            Self::Alea => paths::kernel(),
            Self::Linux => paths::vmlinuz(),
        }
    }
}

/// Tries the rows that need no package on Alea, which must be built, prints them, and returns how many are wrong.
pub fn check() -> Result<usize> {
    let mut rows = runs::load(paths::root())?;
    rows.retain(|row| row.packages.is_empty());
    Ok(report(Kernel::Alea, &rows, &in_busybox(Kernel::Alea, &rows)?))
}

/// What the rows that need no package gave, in the order of `rows`.
fn in_busybox(kernel: Kernel, rows: &[Row]) -> Result<Vec<Verdicts>> {
    let machine = MachineArgs::default().quiet_machine()?.args([
        // Devices that the rows say have no driver.
        "-netdev",
        "user,id=net",
        "-device",
        "virtio-net-pci,netdev=net",
        "-drive",
        "if=none,id=disk,file=null-co://,format=raw",
        "-device",
        "virtio-blk-pci,drive=disk",
    ]);
    let scripts = tries::in_own_root(&machine, &kernel.image(), rows)?;
    let boots = Boots { machine, kernel: kernel.image(), initramfs: paths::initramfs() };
    tries::joined(scripts, boots, rows)
}

/// Prints a line for each row; returns how many are not as the file says.
fn report(kernel: Kernel, rows: &[Row], verdicts: &[Verdicts]) -> usize {
    let mut wrong = 0;
    for (row, verdict) in rows.iter().zip(verdicts) {
        let (is_wrong, line) = judged(kernel, row, verdict);
        println!("{line}");
        wrong += usize::from(is_wrong);
    }
    wrong
}

/// Whether a row is wrong, and the line that says how it went.
fn judged(kernel: Kernel, row: &Row, verdict: &Verdicts) -> (bool, String) {
    let name = format!("{}: {}", row.group, row.name);
    let Some(works) = verdict.works else {
        let by = row.shown.as_deref().unwrap_or("docs/abi.md");
        let says = if row.runs { "runs" } else { "not" };
        return (false, format!("        {says:<5} {name} (by {by})"));
    };
    let wrong = match kernel {
        Kernel::Alea => works != row.runs,
        Kernel::Linux => !works && row.linux.is_none(),
    };
    let mark = if wrong { "WRONG" } else { "ok" };
    let says = if works { "runs" } else { "not" };
    let mut line = format!("{mark:<7} {says:<5} {name}");
    if wrong {
        line.extend(verdict.said.lines().map(|said| format!("\n            {said}")));
    }
    (wrong, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(runs: bool, linux: Option<&str>) -> Row {
        Row {
            group: "tools".into(),
            name: "git".into(),
            runs,
            script: Some("true".into()),
            boot: None,
            until: None,
            packages: Vec::new(),
            shown: None,
            calls: Vec::new(),
            linux: linux.map(str::to_owned),
        }
    }

    #[test]
    fn what_turns_out_otherwise_is_wrong() {
        let gave = |works| Verdicts { works: Some(works), said: "why\n".into() };
        for (kernel, runs, works, linux, wrong) in [
            (Kernel::Alea, true, true, None, false),
            (Kernel::Alea, true, false, None, true),
            (Kernel::Alea, false, true, Some("a module"), true),
            (Kernel::Alea, false, false, None, false),
            (Kernel::Linux, false, false, None, true),
            (Kernel::Linux, false, false, Some("a module"), false),
            (Kernel::Linux, false, true, None, false),
        ] {
            let (is_wrong, line) = judged(kernel, &row(runs, linux), &gave(works));
            assert_eq!(is_wrong, wrong, "{line}");
            assert_eq!(line.contains("why"), wrong, "{line}");
        }
    }
}
