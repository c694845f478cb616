//! `cargo xtask liburing`: liburing's own tests of io_uring, on Linux and on Alea.
//!
//! Source and tests are Debian's package, fetched through apt, built below `target/alea/liburing` and never committed. Both kernels
//! run the same static programs from one initramfs; how each ends must be the same. Differences that are known stand in
//! `tests/liburing/known.toml` with a reason; any other fails, and so does one that has gone away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, process};
use xtask_setup::apt::Apt;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

use crate::outcomes::{self, STATUS, kernel};
use crate::programs::{MARK, run_all};

const RELEASE: &str = "bookworm";

/// Seconds that a test gets: twice what its own script gives, which `pollfree` exceeds on Linux under TCG.
const LIMIT: u64 = 120;
const SILENCE: Duration = Duration::from_secs(10 * LIMIT);

/// Short ones of each kind.
const SAMPLE: [&str; 15] = [
    "accept-test",
    "connect",
    "cq-ready",
    "double-poll-crash",
    "eventfd",
    "files-exit-hang-poll",
    "link",
    "link-timeout",
    "nop",
    "poll-cancel",
    "probe",
    "register-restrictions",
    "shutdown",
    "splice",
    "timeout-overflow",
];

/// Runs liburing's own tests on Linux and Alea, and compares them.
#[derive(Args)]
pub struct Liburing {
    /// Tests, by the names of their files; default: all
    tests: Vec<String>,
    /// Only a few that are short
    #[arg(long, conflicts_with = "tests")]
    sample: bool,
    /// Run on this kernel only, and print what the tests print: `alea` or `linux`
    #[arg(long, value_name = "alea|linux")]
    only: Option<String>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

impl Liburing {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        let sample: Vec<String> = SAMPLE.map(str::to_owned).into();
        let tests = programs(if self.sample { &sample } else { &self.tests })?;
        let archive = archive(&tests)?;
        let machine = self.machine.machine()?.memory("1G");
        if let Some(only) = &self.only {
            let kernel = kernel(only, self.build)?;
            print!("{}", run_all(&machine, &kernel, &archive, SILENCE)?);
            return Ok(ExitCode::SUCCESS);
        }
        let [linux, alea] = ["linux", "alea"].map(|name| {
            run_all(&machine, &kernel(name, self.build)?, &archive, SILENCE)
                .map(|output| outcomes::read(&output))
        });
        let tally = outcomes::compare(&linux?, &alea?, &outcomes::known("liburing")?);
        Ok(tally.conclude())
    }
}

/// The tests that are asked for, or all: names and programs, compiled.
fn programs(asked: &[String]) -> Result<Vec<(String, PathBuf)>> {
    let folder = paths::alea().join("liburing");
    if !folder.exists() {
        fetch(&folder).context(
            "liburing's source of Debian cannot be fetched; copy target/alea/liburing from a clone that has it",
        )?;
    }
    let mut tests = Vec::new();
    for entry in fs::read_dir(folder.join("test"))? {
        let file = entry?.path();
        let Some(name) = file.file_stem().and_then(|name| name.to_str()) else { continue };
        let is_asked = asked.is_empty() || asked.iter().any(|test| test == name);
        if file.extension().is_some_and(|kind| kind == "c") && name != "helpers" && is_asked {
            tests.push((name.to_owned(), compile(&folder, name)?));
        }
    }
    if let Some(none) = asked.iter().find(|asked| !tests.iter().any(|(name, _)| name == *asked)) {
        bail!("liburing has no test {none}");
    }
    tests.sort();
    Ok(tests)
}

/// Unpacks the source and builds the library; the folder appears whole, by rename.
fn fetch(folder: &Path) -> Result<()> {
    setup::ensure(&[Need::DpkgSource])?;
    fs::create_dir_all(paths::alea())?;
    let scratch = tempfile::tempdir_in(paths::alea())?;
    let downloads = scratch.path().join("downloads");
    fs::create_dir(&downloads)?;
    let dsc = Apt::of_release(RELEASE)?.source("liburing", &downloads)?;
    let whole = scratch.path().join("whole");
    let mut unpack = Command::new("dpkg-source");
    unpack.arg("--extract").arg(&dsc).arg(&whole);
    process::run("unpacking the source of liburing", &mut unpack)?;
    let mut configure = Command::new("./configure");
    configure.current_dir(&whole).args(["--cc=gcc", "--cxx=g++"]);
    process::output(&mut configure).context("liburing's configure")?;
    let mut make = Command::new("make");
    make.arg("-C").arg(whole.join("src")).arg("liburing.a");
    process::output(&mut make).context("liburing's library")?;
    fs::rename(&whole, folder).with_context(|| paths::shown(folder))
}

/// A test as a static program, which is kept.
fn compile(folder: &Path, name: &str) -> Result<PathBuf> {
    let program = folder.join("test").join(format!("{name}.t"));
    if program.exists() {
        return Ok(program);
    }
    let part = program.with_extension("part");
    let mut gcc = Command::new("gcc");
    gcc.current_dir(folder.join("test"))
        .args(["-static", "-O1", "-w", "-D_GNU_SOURCE", "-D__SANE_USERSPACE_TYPES__"])
        .args(["-DLIBURING_BUILD_TEST", "-I../src/include", "-include", "../config-host.h", "-o"])
        .arg(&part)
        .arg(format!("{name}.c"))
        .args(["helpers.c", "../src/liburing.a", "-lpthread"]);
    process::output(&mut gcc).with_context(|| format!("{name} does not compile"))?;
    fs::rename(&part, &program)?;
    Ok(program)
}

/// An initramfs that runs the tests one after the other, each in a folder of its own.
fn archive(tests: &[(String, PathBuf)]) -> Result<PathBuf> {
    let mut init = String::from(
        "#!/bin/sh\nexport PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp\n\
         mount -t proc proc /proc\nmount -t sysfs sysfs /sys\nmount -t devtmpfs dev /dev\n\
         mount -t tmpfs tmp /tmp\nip link set lo up\nulimit -l unlimited\n",
    );
    let mut tree = Tree::with_busybox()?;
    for (name, program) in tests {
        let target = format!("tests/{name}");
        tree.host_file(&target, 0o755, program)?;
        init += &format!(
            "echo '{MARK}{name}'; mkdir /tmp/{name}; cd /tmp/{name}; \
             timeout -s KILL {LIMIT} /{target} </dev/null 2>&1; echo \"{STATUS}$?\"; cd /; rm -rf /tmp/{name}\n"
        );
    }
    init += &format!("echo '{MARK}end'\npoweroff -f\n");
    tree.file("init", 0o755, init);
    let file = paths::alea().join("liburing.cpio");
    fs::write(&file, tree.archive())?;
    Ok(file)
}
