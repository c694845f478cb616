//! The entropy core and the wait lists under Miri, Rust's interpreter: undefined behaviour on every path that a test takes.
//!
//! Miri comes with nightly Rust only, which nobody needs for anything else here. Where it cannot be had the
//! check says why and counts as neither passed nor failed: the same tests run natively in any case.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use xtask_host::{paths, process};

/// The tests that end in reasonable time, the quickest first; the statistical ones would take hours.
const TESTS: [(&str, &str); 7] = [
    ("alea-random", "hardware"),
    ("alea-random", "fast_pool"),
    ("alea-waitlist", "model"),
    ("alea-waitlist", "ready"),
    ("alea-random", "device"),
    ("alea-random", "crng"),
    ("alea-random", "pool"),
];

/// Fewer cases of each property: Miri is a hundred times slower.
const CASES: (&str, &str) = ("PROPTEST_CASES", "2");

/// For each of them, on a machine that is too slow for it, in seconds.
const LIMIT: &str = "150";
/// What timeout(1) answers then.
const TIMED_OUT: i32 = 124;

/// What came of it.
pub enum Outcome {
    Passed,
    Skipped(String),
}

/// Runs the tests, after installing what is missing.
pub fn check() -> Result<Outcome> {
    if let Err(error) = provide() {
        let why = format!("{error:#}");
        return Ok(Outcome::Skipped(why.lines().next().unwrap_or_default().to_owned()));
    }
    for (at, (package, test)) in TESTS.iter().enumerate() {
        if !passes(package, test)? {
            let names = TESTS.map(|(_, test)| test);
            let (done, left) = (names[..at].join(", "), names[at..].join(", "));
            return Ok(Outcome::Skipped(format!("passed: {done}; too slow here: {left}")));
        }
    }
    Ok(Outcome::Passed)
}

/// Whether the test came to its end in time; an error if it failed.
fn passes(package: &str, test: &str) -> Result<bool> {
    let mut command = nightly(&["miri", "test", "--package", package, "--test", test]);
    // proptest looks for a folder of failures.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env(CASES.0, CASES.1);
    let out = command.stdin(Stdio::null()).output().context("cannot start timeout")?;
    if out.status.success() || out.status.code() == Some(TIMED_OUT) {
        return Ok(out.status.success());
    }
    let (output, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    bail!("{output}{errors}")
}

fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args([LIMIT, "rustup", "run", "nightly", "cargo"]).args(words);
    command.current_dir(paths::root());
    command.env("CARGO_TARGET_DIR", paths::root().join("target/miri"));
    // What the stable cargo that runs this has set for its children.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(name);
    }
    command
}

/// A nightly toolchain with Miri and its own build of the library.
fn provide() -> Result<()> {
    process::which("rustup").context("no rustup")?;
    if process::output(&mut nightly(&["miri", "--version"])).is_err() {
        let words = ["toolchain", "install", "nightly", "--profile", "minimal"];
        let components = ["--component", "miri", "--component", "rust-src"];
        let mut install = Command::new("timeout");
        process::run(
            "installing Miri",
            install.args([LIMIT, "rustup"]).args(words).args(components),
        )
        .context("Miri cannot be installed")?;
    }
    let mut setup = nightly(&["miri", "setup"]);
    process::run("building Miri's library", &mut setup).context("Miri cannot be set up")
}
