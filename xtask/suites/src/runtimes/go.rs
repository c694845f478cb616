//! Go's standard library: its test binaries, and the files of GOROOT that they read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask_guest::initramfs::Tree;
use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need};

/// The packages whose tests are run.
pub const PACKAGES: [&str; 9] =
    ["sync", "sync/atomic", "os", "os/exec", "time", "crypto/rand", "net", "net/http", "runtime"];

/// Adds the tests of those packages that `units` names.
pub fn add(tree: &mut Tree, units: &[String]) -> Result<()> {
    let root = goroot()?;
    let into = paths::alea().join("runtimes/go");
    fs::create_dir_all(&into)?;
    for package in PACKAGES.iter().filter(|name| units.contains(&format!("go:{name}"))) {
        let name = format!("{}.test", package.replace('/', "_"));
        let binary = into.join(&name);
        let mut go = Command::new(root.join("bin/go"));
        go.args(["test", "-c", "-o"]).arg(&binary).arg(package);
        // In the library's own module: elsewhere the settings of some old version of Go are the default.
        go.current_dir(root.join("src"));
        go.env("CGO_ENABLED", "0").env("GOFLAGS", "").env("GO111MODULE", "");
        process::run(&format!("building Go's tests of {package}"), &mut go)?;
        tree.host_file(&format!("go/bin/{name}"), 0o755, &binary)?;
        add_sources(tree, &root, package)?;
    }
    tree.dir("go/src/testdata", 0o755);
    tree.overlay_at(&root.join("src/testdata"), "go/src/testdata/")?;
    tree.host_file("go/lib/time/zoneinfo.zip", 0o644, &root.join("lib/time/zoneinfo.zip"))?;
    tree.host_file("go/VERSION", 0o644, &root.join("VERSION"))?;
    // Some tests look for themselves where they were compiled.
    if let Some(path) = root.to_str().map(|path| path.trim_start_matches('/')) {
        tree.symlink(path, "/go");
    }
    Ok(())
}

/// A package's own files and test data: its tests open them.
fn add_sources(tree: &mut Tree, root: &Path, package: &str) -> Result<()> {
    let dir = root.join("src").join(package);
    tree.dir(&format!("go/src/{package}"), 0o755);
    for entry in fs::read_dir(&dir).with_context(|| paths::shown(&dir))? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let path = format!("go/src/{package}/{name}");
        if entry.file_type()?.is_file() {
            tree.host_file(&path, 0o644, &entry.path())?;
        } else if name == "testdata" {
            tree.dir(&path, 0o755);
            tree.overlay_at(&entry.path(), &format!("{path}/"))?;
        }
    }
    Ok(())
}

/// Compiles a program of one file.
pub fn program(source: &Path, program: PathBuf) -> Result<PathBuf> {
    let mut go = Command::new(goroot()?.join("bin/go"));
    go.args(["build", "-o"]).arg(&program).arg(source);
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "");
    process::run("building the program of Go", &mut go)?;
    Ok(program)
}

/// Where Go is; Debian's is installed if there is none.
fn goroot() -> Result<PathBuf> {
    setup::ensure(&[Need::Go])?;
    let root = process::output(Command::new("go").args(["env", "GOROOT"]))?;
    Ok(PathBuf::from(root.trim()))
}
