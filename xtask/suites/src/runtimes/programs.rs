//! Programs of `tests/runtimes` that print the same on every kernel: musl, Rust's standard library, BusyBox's network tools, servers on
//! io_uring.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask_guest::initramfs::Tree;
use xtask_host::{paths, process};
use xtask_setup::apt::Apt;

/// The units, and the source of each.
pub const UNITS: [(&str, &str); 5] = [
    ("musl:libc", "libc.c"),
    ("rust:std", "std.rs"),
    ("rust:uring", "uring.rs"),
    ("golang:uring", "uring.go"),
    ("busybox:net", "net.sh"),
];

/// The packages of crates.io that the server on io_uring is built with.
const URING_CRATES: &str =
    "tokio-uring = \"=0.5.0\"\ntokio = { version = \"1\", features = [\"time\"] }\n";

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
            "rust:uring" => rust_with_crates(&source, &into.join("uring"))?,
            "golang:uring" => super::go::program(&source, into.join("uring-go"))?,
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

/// As [`rust`], by cargo, in a package of its own below `target/`.
fn rust_with_crates(source: &Path, package: &Path) -> Result<PathBuf> {
    fs::create_dir_all(package)?;
    let source = source.to_str().context("the path of the source is no text")?;
    let manifest = package.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"server\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [[bin]]\nname = \"server\"\npath = {source:?}\n\n[dependencies]\n{URING_CRATES}\n[workspace]\n"
    );
    fs::write(&manifest, text).with_context(|| paths::shown(&manifest))?;
    let host = "x86_64-unknown-linux-gnu";
    let mut cargo = Command::new("cargo");
    // With a target named, what runs while it is built is not linked so.
    cargo.args(["build", "--release", "--target", host, "--manifest-path"]).arg(&manifest);
    cargo.arg("--target-dir").arg(package.join("target"));
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    process::run("building the server of Rust", &mut cargo)?;
    Ok(package.join("target").join(host).join("release/server"))
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
