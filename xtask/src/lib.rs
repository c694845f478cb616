//! The command line of `cargo xtask`: every command by name, and the program that has it. That is another package, compiled when
//! one of its commands is used for the first time: charts, archives and debug information take minutes on a slow machine.
//!
//! Uses no other crate, since it is the first thing that a clone compiles (`tests/thin.rs`). The programs know the options of
//! their commands; a test of `xtask-ci` compares the list here with what they take.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, ExitCode};

const SETUP: &str = "xtask-setup";
const CHECK: &str = "xtask-check";
const SUITES: &str = "xtask-suites";
const BENCH: &str = "xtask-bench";
const TIDY: &str = "xtask-tidy";
const CI: &str = "xtask-ci";
const DIST: &str = "xtask-dist";
const SHARDS: &str = "xtask-shards";

/// A command, the package and program that has it, and what it does.
pub struct Command(pub &'static str, pub &'static str, pub &'static str);

/// All commands, in the order in which help shows them.
pub const COMMANDS: &[Command] = &[
    Command(
        "setup",
        SETUP,
        "Install what is missing: Rust's bare-metal target, QEMU, a C compiler, BusyBox, Linux",
    ),
    Command("build", SETUP, "Build the kernel and the initramfs into target/alea/"),
    Command(
        "run",
        CHECK,
        "Boot Alea to a shell; with no terminal, play a demonstration and power off",
    ),
    Command("trace", CHECK, "Run a program with the tracepoints on, and write a timeline of it"),
    Command("boot", CHECK, "Boot any kernel and initramfs, on any CPU model and number of CPUs"),
    Command(
        "debug",
        CHECK,
        "Start a machine that stands, and gdb with the kernel's types and commands of its own",
    ),
    Command("test", CHECK, "Run the host tests and the tests that boot QEMU"),
    Command("abi", CHECK, "Run the ABI programs of tests/abi, and compare with what Linux printed"),
    Command("busybox", SUITES, "Run BusyBox's own tests, and compare each result with Linux's"),
    Command(
        "vdso",
        SUITES,
        "Run Linux's self tests of the vDSO, and Go's of random numbers, on both kernels",
    ),
    Command(
        "liburing",
        SUITES,
        "Run liburing's own tests of io_uring on both kernels, and compare how each ends",
    ),
    Command("strace", SUITES, "Run strace's own tests on both kernels, and compare how each ends"),
    Command(
        "gdb",
        SUITES,
        "Run gdb's own tests on both kernels, and compare each of their verdicts",
    ),
    Command(
        "runtimes",
        SUITES,
        "Run the own tests of Go, Python and Linux on Linux and on Alea, and compare them",
    ),
    Command("runs", SUITES, "Try what README says runs on Alea, and what it says does not"),
    Command(
        "debian",
        SUITES,
        "Run programs of Debian on Linux and on Alea, and compare what they print",
    ),
    Command(
        "stress",
        SUITES,
        "Run all stressors of Debian's stress-ng on Linux and on Alea, and compare their verdicts",
    ),
    Command(
        "bench",
        BENCH,
        "Compare Alea with Linux: the same programs, the same QEMU, boots interleaved",
    ),
    Command("profile", BENCH, "Show where the time of an exec goes"),
    Command(
        "report",
        BENCH,
        "Write the report's page anew from what was measured, and check how it looks",
    ),
    Command(
        "random-stats",
        SUITES,
        "Put what user space reads, and the raw jitter, through statistical tests",
    ),
    Command("assess", SUITES, "Assess the entropy of raw jitter in the form of NIST SP 800-90B"),
    Command("soak", CHECK, "Run everything at once, on several CPUs, for a while"),
    Command(
        "latency",
        BENCH,
        "Measure how long a task of the highest priority waits while another user does the worst",
    ),
    Command("load", BENCH, "Measure how each kernel shares its CPUs among many"),
    Command(
        "experiments",
        BENCH,
        "Do the published experiments about random bytes and system calls again, on both kernels",
    ),
    Command(
        "tools",
        BENCH,
        "Measure what strace, gdb, perf and seccomp filters cost a program, on Linux and on Alea",
    ),
    Command(
        "exhaust",
        CHECK,
        "Let a user take all he can get of one kind of object after the other",
    ),
    Command("fuzz", CHECK, "Throw random and hostile system calls at the kernel"),
    Command(
        "crate",
        CHECK,
        "Check alea-random as its adopters use it: features, oldest Rust, architectures, package, interface",
    ),
    Command(
        "residue",
        CHECK,
        "Stop after each draw, and search memory and registers for what was drawn",
    ),
    Command(
        "mutants",
        CHECK,
        "Change the entropy core in every way there is, and want a test to fail each time",
    ),
    Command("proofs", CHECK, "Prove again what is proven of the entropy core"),
    Command(
        "twins",
        CHECK,
        "Boot a machine without entropy twice, attack it, and compare all bytes that it gave",
    ),
    Command(
        "snapshots",
        CHECK,
        "Save the machine at every instruction of draws and reseeds, and compare twins of each snapshot",
    ),
    Command(
        "merge",
        SHARDS,
        "Make one report of what several machines found, each with its part of the work",
    ),
    Command("image", CHECK, "Make a bootable ISO with Limine"),
    Command(
        "dist",
        DIST,
        "Make a release: kernel, symbols, initramfs, ISO, checksums, bill of materials",
    ),
    Command("syscalls", TIDY, "Write docs/abi.md from the system-call table"),
    Command("tidy", TIDY, "Check the house rules"),
    Command("ci", CI, "Run all checks: format, clippy, tidy, test, busybox"),
];

/// What the words after `cargo xtask` ask for.
#[derive(Debug, PartialEq)]
enum Asked {
    Help,
    Version,
    /// A command with its arguments.
    Start {
        program: &'static str,
        args: Vec<OsString>,
    },
    Nothing,
    Unknown(String),
}

/// Does what the words after `cargo xtask` ask for. Comes back only if that is done here: a command's program takes the place of
/// this one, and so its exit status and its signals are the command's.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    match asked(args.collect()) {
        Asked::Help => print!("{}", help()),
        Asked::Version => println!("cargo xtask {}", env!("CARGO_PKG_VERSION")),
        Asked::Start { program, args } => return start(program, &args),
        Asked::Nothing => {
            eprint!("{}", help());
            return ExitCode::from(2);
        }
        Asked::Unknown(name) => {
            eprintln!("error: there is no command {name}; `cargo xtask --help` lists all");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn asked(mut args: Vec<OsString>) -> Asked {
    let Some(first) = args.first().map(|first| first.to_string_lossy().into_owned()) else {
        return Asked::Nothing;
    };
    match first.as_str() {
        "-h" | "--help" => return Asked::Help,
        "-V" | "--version" => return Asked::Version,
        // `help NAME` is `NAME --help`.
        "help" if args.len() == 1 => return Asked::Help,
        "help" => args = vec![args.swap_remove(1), "--help".into()],
        _ => {}
    }
    match COMMANDS.iter().find(|Command(name, ..)| args[0] == OsStr::new(name)) {
        Some(&Command(_, program, _)) => Asked::Start { program, args },
        None => Asked::Unknown(args[0].to_string_lossy().into_owned()),
    }
}

fn help() -> String {
    let width = COMMANDS.iter().map(|Command(name, ..)| name.len()).max().unwrap_or(0);
    let mut text = String::from(
        "Build, boot, test and measure Alea\n\nUsage: cargo xtask <COMMAND>\n\nCommands:\n",
    );
    for Command(name, _, about) in COMMANDS {
        let _ = writeln!(text, "  {name:width$}  {about}");
    }
    text.push_str(
        "\nOptions:\n  -h, --help     Print help; `cargo xtask COMMAND --help` has a command's own\n  \
         -V, --version  Print version\n",
    );
    text
}

/// Has cargo compile `program` if need be, and becomes it. Comes back with an error only.
fn start(program: &str, args: &[OsString]) -> ExitCode {
    let mut cargo = process::Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.arg("run");
    if is_compiled(program) {
        cargo.arg("--quiet");
    } else {
        eprintln!("cargo xtask: compiling {program}, once");
    }
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    cargo.args(["--manifest-path", manifest, "--package", program, "--bin", program, "--"]);
    let error = cargo.args(args).exec();
    eprintln!("error: cannot start {}: {error}", cargo.get_program().display());
    ExitCode::FAILURE
}

/// Whether `program` lies beside this one, perhaps an older form of it.
fn is_compiled(program: &str) -> bool {
    let beside = |own: PathBuf| own.with_file_name(program).is_file();
    std::env::current_exe().is_ok_and(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Asked {
        asked(words.iter().map(OsString::from).collect())
    }

    fn starts(program: &'static str, args: &[&str]) -> Asked {
        Asked::Start { program, args: args.iter().map(OsString::from).collect() }
    }

    #[test]
    fn a_command_gets_its_arguments_as_they_are() {
        let run = ["run", "--root", "x", "--", "sh", "--help"];
        assert_eq!(of(&run), starts("xtask-check", &run));
        assert_eq!(of(&["tidy", "-h"]), starts("xtask-tidy", &["tidy", "-h"]));
    }

    #[test]
    fn help_is_asked_for_in_four_ways() {
        for words in [&["--help"][..], &["-h"], &["help"]] {
            assert_eq!(of(words), Asked::Help);
        }
        assert_eq!(of(&["help", "bench"]), starts("xtask-bench", &["bench", "--help"]));
        assert_eq!(of(&["help", "x"]), Asked::Unknown("x".into()));
    }

    #[test]
    fn what_is_no_command_is_named() {
        assert_eq!(of(&[]), Asked::Nothing);
        assert_eq!(of(&["runn"]), Asked::Unknown("runn".into()));
        assert_eq!(of(&["--quiet"]), Asked::Unknown("--quiet".into()));
    }

    #[test]
    fn help_has_a_line_for_each() {
        let text = help();
        for Command(name, _, about) in COMMANDS {
            let line = |line: &&str| line.trim_start().starts_with(name) && line.ends_with(about);
            assert_eq!(text.lines().filter(line).count(), 1, "{name}");
        }
    }
}
