//! Rows that need Debian's packages: in one root that has all of them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::Kernel;
use super::tries::{self, Boots, Verdicts};
use crate::debian::root;
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, process};
use xtask_tidy::runs::Row;

/// For the root, twice, and what runs in it.
const MEMORY: &str = "7G";

/// sysvinit with a login on the serial line alone.
const INITTAB: &str = "id:2:initdefault:\nsi::sysinit:/etc/init.d/rcS\nl2:2:wait:/etc/init.d/rc 2\n\
                       T0:23:respawn:/sbin/getty -L ttyS0 115200 vt100\n";

/// All packages that rows name.
pub fn packages(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.packages.iter().cloned()).collect()
}

/// What the rows gave, in a root with all `packages`.
pub fn tried(kernel: Kernel, rows: &[Row], packages: &[&str]) -> Result<Vec<Verdicts>> {
    let tar = root::tar(packages, &root::hook(&[], false), false)?;
    let root = xtask_run::packed(&tar)?;
    // The scripts and what sysvinit wants lie over the root.
    let mut tree = Tree::new();
    tree.file("etc/inittab", 0o644, INITTAB);
    for (name, text) in tries::files(rows) {
        tree.file(&name, 0o644, text);
    }
    let folder = tempfile::tempdir_in(paths::alea())?;
    let archive = folder.path().join("root.cpio");
    fs::copy(&root, &archive).with_context(|| paths::shown(&archive))?;
    fs::OpenOptions::new().append(true).open(&archive)?.write_all(&tree.archive())?;
    let mut run = process::cargo();
    run.args(["xtask", "run", "--initrd"]).arg(&archive).args(["--memory", MEMORY, "--kernel"]);
    run.arg(if kernel == Kernel::Alea { "alea" } else { "linux" });
    run.args(["--", "sh", "/tries/driver"]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = run.output().context("cannot start cargo")?;
    let verdicts = tries::parse(&String::from_utf8_lossy(&output.stdout), rows)?;
    let args = MachineArgs { memory: Some(MEMORY.into()), ..MachineArgs::default() };
    let boots =
        Boots { machine: args.quiet_machine()?, kernel: kernel.image(), initramfs: archive };
    tries::joined(verdicts, boots, rows)
}
