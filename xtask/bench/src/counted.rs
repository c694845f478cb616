//! A script in a root of Debian on one kernel, with counted instructions for time: so its figures repeat on a busy host.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use xtask_host::{paths, process, term};

/// The packages that a script's head names.
const PACKAGES: &str = "# packages: ";

/// What packages a script wants.
pub fn packages(script: &str) -> Result<Vec<&str>> {
    let packages = script.lines().find_map(|line| line.strip_prefix(PACKAGES));
    Ok(packages.context("the script names no packages")?.split(' ').collect())
}

/// Runs one part of the script on a kernel (a file, or `linux`), with one CPU and a boot of its own: what it printed.
pub fn run(kernel: &str, root: &Path, script: &str, part: &str) -> Result<String> {
    let spinner = term::spinner(&format!("{part} on {kernel}"));
    let mut run = process::cargo();
    run.args(["xtask", "run", "--kernel", kernel, "--icount", "--smp", "1", "--root"]).arg(root);
    run.arg("--overlay").arg(paths::alea().join("userland"));
    // Counted time is a thousand million instructions a second. Left to find that out, Linux is wrong by half at times.
    run.args(["--append", "tsc_early_khz=1000000"]);
    run.args(["--timeout", "3000", "--", "/bin/sh", "-c", script, "script", part]);
    let output = run.stdin(Stdio::null()).output().context("cannot start cargo")?;
    spinner.finish_and_clear();
    let text = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the script failed on {kernel}, {part}:\n{text}{told}");
    Ok(text.into_owned())
}
