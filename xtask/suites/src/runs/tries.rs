//! Rows that are tried: scripts, all in one guest, and programs that are booted as init, each in a guest of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use xtask_guest::guest::{Guest, Limits};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;
use xtask_tidy::runs::Row;

/// More than an init system takes under TCG on a busy machine.
const BOOT: Duration = Duration::from_secs(300);
/// A script has 200 s.
const SILENCE: Duration = Duration::from_secs(250);

/// Runs all scripts, and says of each with which status it ended, and if that is not 0, what it said last.
pub const DRIVER: &str = r#"#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
ip link set lo up
cd /tmp
for script in /tries/*.sh; do
    [ -f "$script" ] || continue
    name=${script##*/}
    timeout 200 sh "$script" </dev/null >/tmp/said 2>&1
    status=$?
    [ $status = 0 ] || tail -n 6 /tmp/said
    echo "=== status ${name%.sh} $status"
done
"#;

/// Process 1 of a root that has nothing but BusyBox.
const INIT: &str = "#!/bin/sh\nmount -t proc proc /proc\nmount -t sysfs sysfs /sys\nmount -t devtmpfs dev /dev\n\
                    mkdir -p /dev/pts\nmount -t devpts devpts /dev/pts\nsh /tries/driver\npoweroff -f\n";

/// How a row went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// Nothing if it was not tried.
    pub works: Option<bool>,
    /// What a script that failed said last.
    pub said: String,
}

/// The scripts of `rows` by name, and what runs them.
pub fn files(rows: &[Row]) -> Vec<(String, String)> {
    let scripts = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| Some((format!("tries/{at:03}.sh"), row.script.as_ref()?.clone())));
    scripts.chain([("tries/driver".to_owned(), DRIVER.to_owned())]).collect()
}

/// What the guest printed, row by row.
pub fn parse(output: &str, rows: &[Row]) -> Result<Vec<Verdicts>> {
    let mut verdicts = vec![Verdicts::default(); rows.len()];
    let mut said = String::new();
    for line in output.lines() {
        let Some(rest) = line.trim_end().strip_prefix("=== status ") else {
            said.push_str(line);
            said.push('\n');
            continue;
        };
        let (at, status) = rest.split_once(' ').context("a status without a row")?;
        let verdict = verdicts.get_mut(at.parse::<usize>()?).context("a status of no row")?;
        *verdict = Verdicts { works: Some(status == "0"), said: std::mem::take(&mut said) };
    }
    for (row, verdict) in rows.iter().zip(&verdicts) {
        if row.script.is_some() && verdict.works.is_none() {
            anyhow::bail!("the guest ended before {} was tried:\n{said}", row.name);
        }
    }
    Ok(verdicts)
}

/// Runs the scripts of `rows` in a root that has nothing but BusyBox.
pub fn in_own_root(machine: &Machine, kernel: &Path, rows: &[Row]) -> Result<Vec<Verdicts>> {
    let mut tree = Tree::with_busybox()?;
    for (name, text) in files(rows) {
        tree.file(&name, 0o644, text);
    }
    tree.file("tries/init", 0o755, INIT).file("etc/passwd", 0o644, "root:x:0:0::/root:/bin/sh\n");
    let archive = tempfile::NamedTempFile::new_in(paths::alea())?;
    fs::write(archive.path(), tree.archive())?;
    let line = "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check rdinit=/tries/init";
    let machine = machine.clone().direct(kernel, Some(archive.path().to_owned()), line);
    let outcome = Guest::start(&machine)?.finish(Limits::idle(SILENCE))?;
    parse(&outcome.output, rows)
}

/// A machine on which programs are booted as init.
pub struct Boots {
    pub machine: Machine,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
}

impl Boots {
    /// Whether the row's program prints what it has to.
    fn boots(&self, program: &str, until: &str) -> Result<Verdicts> {
        let line = format!(
            "console=ttyS0 initramfs_options=size=75% panic=-1 no_timer_check rdinit={program}"
        );
        let machine =
            self.machine.clone().direct(&self.kernel, Some(self.initramfs.clone()), &line);
        let mut guest = Guest::start(&machine)?;
        let came = guest.wait_for(until, BOOT);
        let said = guest.stop()?.output;
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n");
        Ok(Verdicts { works: Some(came.is_ok()), said: last })
    }
}

/// What the scripts gave, and what the boots of `rows` give.
pub fn joined(mut all: Vec<Verdicts>, boots: Boots, rows: &[Row]) -> Result<Vec<Verdicts>> {
    for (row, verdict) in rows.iter().zip(&mut all) {
        if let (Some(program), Some(until)) = (&row.boot, &row.until) {
            *verdict = boots.boots(program, until)?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize) -> Vec<Row> {
        let row = "[[row]]\ngroup = \"a\"\nname = \"b\"\nruns = true\ntry = \"true\"\n";
        xtask_tidy::runs::parse(&row.repeat(count)).unwrap()
    }

    #[test]
    fn each_status_belongs_to_its_row() {
        let output = "boot\n=== status 001 0\nno such file\n=== status 000 2\n";
        let verdicts = parse(output, &rows(2)).unwrap();
        assert_eq!(verdicts[0], Verdicts { works: Some(false), said: "no such file\n".into() });
        assert_eq!(verdicts[1], Verdicts { works: Some(true), said: "boot\n".into() });
    }

    #[test]
    fn a_guest_that_ends_early_is_an_error() {
        assert!(parse("=== status 000 0\nKernel panic\n", &rows(2)).is_err());
    }
}
