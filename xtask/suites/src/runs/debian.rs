//! Rows that need Debian's packages: one root of all of them, made by mmdebstrap below `target/alea/debian` and kept until another
//! package is wanted.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Kernel;
use super::tries::{self, Boots, Verdicts};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, process};
use xtask_tidy::runs::Row;

const RELEASE: &str = "bookworm";
/// For the root, twice, and what runs in it.
const MEMORY: &str = "7G";

/// sysvinit with a login on the serial line alone.
const INITTAB: &str = "id:2:initdefault:\nsi::sysinit:/etc/init.d/rcS\nl2:2:wait:/etc/init.d/rc 2\n\
                       T0:23:respawn:/sbin/getty -L ttyS0 115200 vt100\n";

/// All packages that rows name, with a comma between.
pub fn packages(rows: &[Row]) -> String {
    let all: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.packages.iter().map(String::as_str)).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

/// What the rows gave, in a root with all `packages`.
pub fn tried(kernel: Kernel, rows: &[Row], packages: &str) -> Result<Vec<Verdicts>> {
    let root = root(packages)?;
    let scripts = tempfile::tempdir_in(paths::alea())?;
    fs::create_dir(scripts.path().join("tries"))?;
    for (name, text) in tries::files(rows) {
        fs::write(scripts.path().join(name), text)?;
    }
    let mut run = process::cargo();
    run.args(["xtask", "run", "--root"]).arg(&root).arg("--overlay").arg(scripts.path());
    run.args([
        "--memory",
        MEMORY,
        "--kernel",
        if kernel == Kernel::Alea { "alea" } else { "linux" },
    ]);
    run.args(["--", "sh", "/tries/driver"]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = run.output().context("cannot start cargo")?;
    let verdicts = tries::parse(&String::from_utf8_lossy(&output.stdout), rows)?;
    if rows.iter().all(|row| row.boot.is_none()) {
        return Ok(verdicts);
    }
    let archive = paths::alea().join("debian/boot.cpio");
    fs::copy(xtask_run::packed(&root)?, &archive)?;
    let mut tree = Tree::new();
    tree.file("etc/inittab", 0o644, INITTAB);
    let mut file = fs::OpenOptions::new().append(true).open(&archive)?;
    std::io::Write::write_all(&mut file, &tree.archive())?;
    let args = MachineArgs { memory: Some(MEMORY.into()), ..MachineArgs::default() };
    let boots =
        Boots { machine: args.quiet_machine()?, kernel: kernel.image(), initramfs: archive };
    tries::joined(verdicts, boots, rows)
}

/// The root as a tar.
fn root(packages: &str) -> Result<PathBuf> {
    let folder = paths::alea().join("debian");
    let (root, list) = (folder.join("root.tar"), folder.join("packages.txt"));
    if root.is_file() && fs::read_to_string(&list).is_ok_and(|list| list == packages) {
        return Ok(root);
    }
    if process::which("mmdebstrap").is_none() {
        bail!("mmdebstrap makes the root of Debian: install it");
    }
    fs::create_dir_all(&folder)?;
    let half = folder.join("root.tar.half");
    let mut make = Command::new("mmdebstrap");
    make.args(["--variant=minbase", "--format=tar", &format!("--include={packages}"), RELEASE]);
    process::run("making a root of Debian's packages", make.arg(&half))?;
    fs::rename(&half, &root)?;
    fs::write(&list, packages)?;
    Ok(root)
}
