//! Programs of `tests/runtimes` that print the same on every kernel: musl, Rust's standard library, BusyBox's network tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask_guest::initramfs::Tree;
use xtask_host::{paths, process};
use xtask_setup::apt::Apt;

/// The units, and the source of each.
pub const UNITS: [(&str, &str); 3] =
    [("musl:libc", "libc.c"), ("rust:std", "std.rs"), ("busybox:net", "net.sh")];

/// Where Debian's musl comes from.
const RELEASE: &str = "bookworm";

/// Adds the programs that `units` names.
pub fn add(tree: &mut Tree, units: &[String]) -> Result<()> {
    let into = paths::alea().join("runtimes/programs");
    fs::create_dir_all(&into)?;
    for (unit, source) in UNITS.iter().filter(|(unit, _)| units.iter().any(|u| u == unit)) {
        let source = paths::source(&format!("tests/runtimes/{source}"));
        let program = match *unit {
            "musl:libc" => musl(&source, into.join("libc"))?,
            "rust:std" => rust(&source, into.join("std"))?,
            _ => source,
        };
        tree.host_file(&format!("usr/lib/alea/programs/{unit}"), 0o755, &program)?;
    }
    Ok(())
}

/// Compiles with glibc linked in: the target of this machine is always there, musl's is not.
fn rust(source: &Path, program: PathBuf) -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-o"]);
    process::run("building the program of Rust", rustc.arg(&program).arg(source))?;
    Ok(program)
}

/// Compiles with Debian's musl, which is unpacked below `target/` and never installed.
fn musl(source: &Path, program: PathBuf) -> Result<PathBuf> {
    let root = paths::alea().join("runtimes/musl");
    let (headers, libraries) =
        (root.join("usr/include/x86_64-linux-musl"), root.join("usr/lib/x86_64-linux-musl"));
    if !libraries.join("libc.a").exists() {
        fs::create_dir_all(&root)?;
        Apt::of_release(RELEASE)?.extract("musl-dev", &root)?;
    }
    let own = process::output(Command::new("gcc").arg("-print-file-name=include"))?;
    if !Path::new(own.trim()).exists() {
        bail!("gcc has no headers of its own");
    }
    let mut gcc = Command::new("gcc");
    // What the script musl-gcc would say, with other folders.
    gcc.args(["-std=gnu11", "-O2", "-static", "-no-pie", "-nostdinc", "-nostdlib", "-w"]);
    gcc.arg("-isystem").arg(headers).arg("-isystem").arg(own.trim()).arg("-o").arg(&program);
    for part in ["crt1.o", "crti.o"] {
        gcc.arg(libraries.join(part));
    }
    gcc.arg(source).arg(libraries.join("libc.a")).arg("-lgcc").arg(libraries.join("crtn.o"));
    process::run("building the program of musl", &mut gcc)?;
    fs::metadata(&program).with_context(|| paths::shown(&program))?;
    Ok(program)
}
