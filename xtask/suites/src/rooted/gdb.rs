//! gdb's own tests: files of DejaGnu's, each of which says many verdicts.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use xtask_host::tally::Tally;

use super::{Options, Suite, compare, words};
use crate::outcomes::{Outcomes, STATUS, ended};
use crate::programs::MARK;

/// What DejaGnu says of a check, before the file's name and the check's.
const VERDICTS: [&str; 9] =
    ["PASS", "FAIL", "KFAIL", "KPASS", "XFAIL", "XPASS", "UNRESOLVED", "UNSUPPORTED", "UNTESTED"];

const GDB: Suite = Suite {
    name: "gdb",
    packages: &[
        "dejagnu",
        "dpkg-dev",
        "expect",
        "g++",
        "gcc",
        "gdb",
        "gdbserver",
        "iproute2",
        "libc6-dbg",
        "libc6-dev",
        "make",
        "procps",
    ],
    is_listed: true,
    silence: 480,
    sample: &[
        "gdb.base/break-entry",
        "gdb.base/catch-signal-fork",
        "gdb.base/hbreak",
        "gdb.base/siginfo-addr",
        "gdb.base/watch-read",
        "gdb.threads/thread_check",
    ],
    read,
};

/// Runs gdb's own tests on Linux and Alea, and compares them.
#[derive(Args)]
pub struct Gdb {
    #[command(flatten)]
    options: Options,
}

impl Gdb {
    pub fn run(self) -> Result<ExitCode> {
        self.options.run(&GDB)
    }
}

/// CI's part of it.
pub fn sample() -> Result<Tally> {
    compare(&GDB, &words(GDB.sample), &Options { smp: 2, sample: true, ..Options::default() })
}

/// How each file ended, and below it the verdicts of each of its checks, in order where they have one name.
fn read(output: &str) -> Outcomes {
    let mut file = "";
    let mut all = Outcomes::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix(MARK) {
            file = name.trim_end();
        } else if let Some(status) = line.strip_prefix(STATUS) {
            // 1 is for a file of which a check failed.
            let status = status.trim_end();
            all.insert(file.to_owned(), ended(if status == "1" { "0" } else { status }));
        } else if let Some((verdict, check)) = line.split_once(": ")
            && VERDICTS.contains(&verdict)
            && let Some((_, check)) = check.split_once(": ")
        {
            let told = all.entry(format!("{file}: {}", steady(check))).or_default();
            *told += if told.is_empty() { "" } else { " " };
            *told += verdict;
        }
    }
    all
}

/// The name of a check without what is another in each run: addresses, and numbers as long as those of processes.
fn steady(check: &str) -> String {
    let mut name = String::new();
    for part in check.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_number = word.len() >= 3 && word.bytes().all(|c| c.is_ascii_digit());
        if is_number || (word.len() > 4 && word.starts_with("0x")) {
            name.push('N');
            name.push_str(&part[word.len()..]);
        } else {
            name.push_str(part);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compared_stands_in_the_list_and_once() {
        let names = GDB.names().unwrap();
        let compared = GDB.script("compared").unwrap();
        let lines = compared.lines().filter(|line| !line.starts_with('#'));
        let compared: Vec<&str> = lines.map(|line| line.split_once(' ').unwrap().1).collect();
        assert!(compared.is_sorted_by(|a, b| a < b), "out of order, or twice");
        for name in compared {
            assert!(names.iter().any(|listed| listed == name), "{name} is not in names");
        }
    }

    #[test]
    fn each_check_is_told_of_below_its_file() {
        let output = "=-=-= gdb.base/a\nPASS: gdb.base/a.exp: run\nPASS: gdb.base/a.exp: next\n\
                      FAIL: gdb.base/a.exp: next\nUNSUPPORTED: gdb.base/a.exp: process 1234: x (2)\n\
                      | PASS: gdb.base/a.exp: log\n=-=-> 1\n=-=-= gdb.base/b\n=-=-> 124\n=-=-= end\n";
        let all: Vec<(String, String)> = read(output).into_iter().collect();
        let all: Vec<(&str, &str)> = all.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            all,
            [
                ("gdb.base/a", "passed"),
                ("gdb.base/a: next", "PASS FAIL"),
                ("gdb.base/a: process N: x (2)", "UNSUPPORTED"),
                ("gdb.base/a: run", "PASS"),
                ("gdb.base/b", "too long"),
            ]
        );
    }
}
