//! `cargo xtask vdso`: other people's tests of the vDSO, on Linux and on Alea.
//!
//! The kernel's self tests come from Debian's package of the Linux source (`selftests`), Go's from the Go that is installed here, if one
//! is. Both kernels run the same static programs; what they say about each test must be the same.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::MachineArgs;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

use crate::programs::{MARK, run_all};
use crate::selftests::{Headers, SelfTest, SelfTests};

/// Self tests of Linux.
const SELF_TESTS: [SelfTest; 7] = [
    SelfTest { folder: "vDSO", name: "vdso_test_gettimeofday", more: &["parse_vdso.c"] },
    SelfTest { folder: "vDSO", name: "vdso_test_getcpu", more: &["parse_vdso.c"] },
    SelfTest { folder: "vDSO", name: "vdso_test_abi", more: &["parse_vdso.c"] },
    SelfTest { folder: "vDSO", name: "vdso_test_clock_getres", more: &[] },
    SelfTest { folder: "vDSO", name: "vdso_test_correctness", more: &[] },
    SelfTest { folder: "vDSO", name: "vdso_test_getrandom", more: &["parse_vdso.c"] },
    SelfTest { folder: "mm", name: "droppable", more: &[] },
];

/// Packages of Go whose tests draw through the vDSO.
const GO_TESTS: [&str; 2] = ["crypto/rand", "crypto/internal/sysrand"];

/// Seconds that a test gets, many times what the longest takes under TCG, and longer than that.
const LIMIT: u64 = 500;
const SILENCE: Duration = Duration::from_secs(LIMIT + 100);

/// Lines that Alea does not print as Linux does, and why.
const KNOWN: [(&str, &str); 1] = [("ok N getrandom timens: PASS", "Alea has no time namespaces")];

/// Runs the self tests of Linux's vDSO and Go's tests of its random numbers on both kernels.
#[derive(Args)]
pub struct Vdso {
    /// Only the tests whose names contain this
    #[arg(default_value = "")]
    name: String,
    #[command(flatten)]
    machine: MachineArgs,
}

impl Vdso {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&setup::DEFAULT)?;
        setup::ensure(&[Need::Linux])?;
        build::build(build::Options::default())?;
        let mut tests = self_tests()?;
        tests.extend(go_tests()?);
        tests.retain(|(name, _)| name.contains(&self.name));
        let archive = archive(&tests)?;
        let machine = self.machine.machine()?;
        let mut failed = 0;
        let [linux, alea] = [paths::vmlinuz(), paths::kernel()]
            .map(|kernel| run_all(&machine, &kernel, &archive, SILENCE));
        let (linux, alea) = (linux?, alea?);
        for (name, _) in &tests {
            let [want, got] = [&linux, &alea].map(|output| verdicts(output, name));
            let unknown: Vec<_> =
                want.iter().filter(|line| !got.contains(line) && !is_known(line, &want)).collect();
            if !want.is_empty() && unknown.is_empty() {
                println!("ok      {name} ({} lines)", want.len());
            } else {
                failed += 1;
                println!("FAILED  {name}\nLinux: {want:#?}\nAlea: {got:#?}");
            }
        }
        for (line, why) in KNOWN {
            println!("known   {line}: {why}");
        }
        println!("{} passed, {failed} failed", tests.len() - failed);
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A known difference, or the exit status of a program that has one.
fn is_known(line: &String, want: &[String]) -> bool {
    let known = |text: &String| KNOWN.iter().any(|(line, _)| line == text);
    known(line) || (line == "exit 0" && want.iter().any(known))
}

/// What a test said of itself, without numbers and times; its exit status last.
fn verdicts(output: &str, name: &str) -> Vec<String> {
    let begin = format!("{MARK}{name}\n");
    let Some((_, rest)) = output.split_once(&begin) else { return Vec::new() };
    let own = rest.split(MARK).next().unwrap_or_default();
    let told = ["ok ", "not ok ", "--- ", "PASS", "FAIL", "exit ", "[OK]", "[FAIL]", "panic"];
    let lines = own.lines().map(|line| line.trim_start().trim_end());
    lines.filter(|line| told.iter().any(|start| line.starts_with(start))).map(no_numbers).collect()
}

fn no_numbers(line: &str) -> String {
    if line.starts_with("exit ") {
        return line.to_owned();
    }
    let mut text = String::new();
    for c in line.chars() {
        if !c.is_ascii_digit() {
            text.push(c);
        } else if !text.ends_with('N') {
            text.push('N');
        }
    }
    text
}

/// The kernel's self tests, compiled: names and programs.
fn self_tests() -> Result<Vec<(String, PathBuf)>> {
    let source = SelfTests::open()?;
    let compiled =
        |test: &SelfTest| Ok((test.name.to_owned(), source.compile(test, Headers::Source)?));
    SELF_TESTS.iter().map(compiled).collect()
}

/// Go's tests, if Go is here.
fn go_tests() -> Result<Vec<(String, PathBuf)>> {
    if process::which("go").is_none() {
        println!("note: there is no Go here, its tests are left out");
        return Ok(Vec::new());
    }
    let mut tests = Vec::new();
    for package in GO_TESTS {
        let name = format!("go_{}", package.replace('/', "_"));
        let program = paths::alea().join("vdso").join(&name);
        let mut go = Command::new("go");
        go.env("CGO_ENABLED", "0").args(["test", "-c", "-o"]).arg(&program).arg(package);
        // Outside of any module, so that nothing of this folder plays a part.
        go.current_dir(paths::alea());
        process::run(&format!("compiling Go's tests of {package}"), &mut go)?;
        tests.push((name, program));
    }
    Ok(tests)
}

/// An initramfs that runs the tests one after the other.
fn archive(tests: &[(String, PathBuf)]) -> Result<PathBuf> {
    let mut init = String::from(
        "#!/bin/sh\nexport PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp\n\
         mount -t proc proc /proc\nmount -t sysfs sysfs /sys\nmount -t devtmpfs dev /dev\ncd /tmp\n",
    );
    let mut tree = Tree::with_busybox()?;
    for (name, program) in tests {
        let flags = if name.starts_with("go_") { "-test.v -test.timeout 9m" } else { "" };
        let target = format!("tests/{name}");
        tree.host_file(&target, 0o755, program)?;
        // A test that hangs is stopped, and so shows as failed.
        let run = format!("timeout {LIMIT} /{target} {flags} 2>&1");
        init += &format!("echo '{MARK}{name}'; {run}; echo \"exit $?\"\n");
    }
    init += &format!("echo '{MARK}end'\npoweroff -f\n");
    tree.file("init", 0o755, init);
    let file = paths::alea().join("vdso/tests.cpio");
    fs::write(&file, tree.archive())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_no_numbers() {
        let output = "boot\n=-=-= one\nTAP version 13\n1..2\nok 1 The time is 12.5\n# x\nexit 0\n\
                      =-=-= two\n=== RUN   TestRead\n    --- PASS: TestRead (0.01s)\nPASS\nexit 1\n\
                      =-=-= end\n";
        assert_eq!(verdicts(output, "one"), ["ok N The time is N.N", "exit 0"]);
        assert_eq!(verdicts(output, "two"), ["--- PASS: TestRead (N.Ns)", "PASS", "exit 1"]);
        assert!(verdicts(output, "three").is_empty());
        let want = ["ok N getrandom timens: PASS", "exit 0"].map(str::to_owned);
        assert!(want.iter().all(|line| is_known(line, &want)));
        assert!(!is_known(&want[1], &want[1..]));
    }
}
