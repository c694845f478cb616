//! The entropy core and the wait lists under Miri, Rust's interpreter: undefined behaviour on every path that a test takes.
//!
//! Miri comes with nightly Rust only, which nobody needs for anything else here. Where it cannot be had the
//! check says why and counts as neither passed nor failed: the same tests run natively in any case. Where it can, a test
//! that is run passes or fails; those that are not run are listed, each with its reason.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use xtask_host::{paths, process};

/// The tests that end in reasonable time, the longest first.
const TESTS: [(&str, &str); 15] = [
    ("alea-random", "fast_pool"),
    ("alea-random", "health"),
    ("alea-random", "crng"),
    ("alea-random", "vdso"),
    ("alea-random", "device"),
    ("alea-random", "handed"),
    ("alea-waitlist", "model"),
    ("alea-waitlist", "ready"),
    ("alea-random", "hardware"),
    ("alea-random", "chacha20"),
    ("alea-random", "pool"),
    ("alea-random", "rand_core"),
    ("alea-random", "splitmix64"),
    ("alea-random", "tpm"),
    ("alea-random", "request"),
];

/// Those of `alea-random` that are left out, and why. The list only gets shorter: [`LEFT_OUT_AT_MOST`].
const LEFT_OUT: [(&str, &str); 9] = [
    ("boot", "seeds dozens of services: minutes each; what they call is called by crng and pool"),
    ("bounds", "enumerates numbers: hours"),
    (
        "jitter",
        "collects ten thousands of samples: hours; health has the tests that they go through",
    ),
    ("known_answers", "makes 16 blocks a thousand times: hours; chacha20 runs the cipher"),
    ("loom", "loom has atomics and threads of its own"),
    ("never_twice", "enumerates sequences of draws: hours"),
    ("recovery", "plays hours of a machine: hours"),
    ("service", "seeds dozens of services: minutes each; rand_core draws from one"),
    ("stack", "measures the real stack of a thread, which an interpreter has not"),
];
const LEFT_OUT_AT_MOST: usize = 9;
const _: () = assert!(LEFT_OUT.len() <= LEFT_OUT_AT_MOST);

/// Fewer cases of each property: Miri is a hundred times slower.
const CASES: (&str, &str) = ("PROPTEST_CASES", "2");

/// Interpreters at once.
const JOBS: usize = 2;
/// For each test, and for all that has to be compiled before, in seconds: ten times what it takes on a machine that has
/// nothing else to do. Who needs longer has hung.
const LIMIT: &str = "900";
/// What timeout(1) answers then.
const TIMED_OUT: i32 = 124;

/// What came of it.
pub enum Outcome {
    Passed,
    Skipped(String),
}

/// Runs the tests, after installing what is missing, and says which it leaves out.
pub fn check() -> Result<Outcome> {
    if let Err(error) = provide() {
        let why = format!("{error:#}");
        return Ok(Outcome::Skipped(why.lines().next().unwrap_or_default().to_owned()));
    }
    run(&["--package", "alea-random", "--package", "alea-waitlist", "--tests", "--no-run"])?;
    let queue = Mutex::new(VecDeque::from(TESTS));
    let job = || -> Result<()> {
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
            let Some((package, test)) = next else { return Ok(()) };
            run(&["--package", package, "--test", test])?;
        }
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..JOBS).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|_| bail!("a job panicked")))
    })?;
    println!("        Miri ran {} files of tests; not:", TESTS.len());
    LEFT_OUT.iter().for_each(|(test, why)| println!("        {test}: {why}"));
    Ok(Outcome::Passed)
}

/// `cargo miri test` with these words; an error if it failed, or had to be ended.
fn run(words: &[&str]) -> Result<()> {
    let mut command = nightly(&[&["miri", "test"][..], words].concat());
    // proptest looks for a folder of failures.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env(CASES.0, CASES.1);
    let out = command.stdin(Stdio::null()).output().context("cannot start timeout")?;
    if out.status.success() {
        return Ok(());
    }
    let [output, errors] = [&out.stdout, &out.stderr].map(|said| String::from_utf8_lossy(said));
    let why = if out.status.code() == Some(TIMED_OUT) { "took too long" } else { "failed" };
    bail!("miri test {} {why}\n{output}{errors}", words.join(" "))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file of tests of the entropy core is run, or left out with a reason.
    #[test]
    fn nothing_is_left_out_unseen() {
        let folder = std::fs::read_dir(paths::source("kernel/random/tests")).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        };
        let mut there: Vec<String> = folder.map(name).collect();
        let run =
            TESTS.iter().filter(|(package, _)| *package == "alea-random").map(|(_, test)| *test);
        let mut known: Vec<&str> = run.chain(LEFT_OUT.iter().map(|(test, _)| *test)).collect();
        there.sort();
        known.sort_unstable();
        assert_eq!(there, known);
    }
}
