//! The client of QEMU's gdb stub: a machine is stopped at a function of the kernel, looked into, stepped, and goes on;
//! and the commands of `kernel/gdb.py` in gdb itself: they read the kernel's structures by the names of their fields.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use alea_tests::{PATIENCE, alea};
use xtask_check::debug::{self, Standing};
use xtask_guest::gdb::{Breakpoint, Gdb, Stepping, Stop};
use xtask_guest::guest::{Guest, Limits};
use xtask_guest::symbolize::address_of;
use xtask_host::{paths, process};

/// A function that every boot calls once.
const FUNCTION: &str = "alea_kernel::random::known_answers::ask_at_boot";

/// A function that a boot with `alea.selftest` calls once all of the kernel is set up, and where the keys are then.
const SELFTEST: &str = "alea_kernel::random::selftest::run";
const NAME_KEYS: &str = "alea_kernel::vfs::object::name_hash::KEYS";

/// Where the kernel's image begins, in the address space of the CPU and in memory.
const IMAGE: u64 = 0xffff_ffff_8000_0000;

const TRAP: u8 = 5;

fn step(gdb: &mut Gdb) -> u64 {
    assert_eq!(gdb.step(0, PATIENCE).unwrap(), Stop::Signal { signal: TRAP, cpu: 0 });
    gdb.registers(0).unwrap().rip().unwrap()
}

#[test]
fn a_machine_stops_at_a_function_is_stepped_and_goes_on() {
    let machine = alea().smp(2).append("console=ttyS0 alea.selftest=only").standing();
    let guest = Guest::start(&machine).unwrap();
    let mut gdb = guest.gdb().unwrap();
    assert_eq!(gdb.cpus().unwrap(), 2);
    let function = address_of(&paths::kernel(), FUNCTION).unwrap();
    gdb.set_breakpoint(Breakpoint::Hardware, function).unwrap();
    let stopped = gdb.resume(PATIENCE).unwrap();
    assert_eq!(stopped, Stop::Signal { signal: TRAP, cpu: 0 });
    let registers = gdb.registers(0).unwrap();
    assert_eq!(registers.rip().unwrap(), function);
    assert!(registers.bytes("xmm15").is_some_and(|bytes| bytes.len() == 16));

    // The same memory by both addresses; longer than one packet.
    let code = gdb.read(0, function, 100_000).unwrap();
    assert_eq!(gdb.read_physical(function - IMAGE, code.len()).unwrap(), code);
    let free = registers.value("rsp").unwrap() - 512;
    gdb.write(0, free, b"something else").unwrap();
    assert_eq!(gdb.read(0, free, 14).unwrap(), b"something else");
    assert!(gdb.read(0, 0x10, 8).is_err(), "the first page is not mapped");

    // One instruction each, of this CPU alone.
    gdb.clear_breakpoint(Breakpoint::Hardware, function).unwrap();
    gdb.set_stepping(Stepping::Undisturbed).unwrap();
    let other = gdb.registers(1).unwrap();
    let mut at = function;
    for _ in 0..5 {
        let next = step(&mut gdb);
        assert!((1..=15).contains(&(next - at)), "no step from {at:#x} to {next:#x}");
        at = next;
    }
    assert_eq!(gdb.registers(1).unwrap(), other);

    // Nothing stops it at once: it stands all the same, and then runs to its end.
    gdb.set_breakpoint(Breakpoint::Software, function).unwrap();
    let late = gdb.resume(Duration::from_millis(1)).unwrap_err();
    assert!(late.to_string().contains("nothing stopped the machine"), "{late:#}");
    assert_eq!(gdb.resume(PATIENCE).unwrap(), Stop::Exited(0));
    assert!(guest.output().contains("random: ready"), "{}", guest.output());
}

/// The keys of the hash of names, without which a user makes all names of a directory one hash: no constant, and another draw in each boot.
/// (`dir_collisions` shows that what collides without keys does not here.)
#[test]
fn every_boot_hashes_names_by_keys_of_its_own() {
    let address = |name| address_of(&paths::kernel(), name).unwrap();
    let keys = || {
        let machine = alea().append("console=ttyS0 alea.selftest=only").standing();
        let guest = Guest::start(&machine).unwrap();
        let mut gdb = guest.gdb().unwrap();
        gdb.set_breakpoint(Breakpoint::Hardware, address(SELFTEST)).unwrap();
        gdb.resume(PATIENCE).unwrap();
        let bytes = gdb.read(0, address(NAME_KEYS), 16).unwrap();
        let (words, _) = bytes.as_chunks();
        [0, 1].map(|n| u64::from_le_bytes(words[n]))
    };
    let all: BTreeSet<u64> = [keys(), keys()].concat().into_iter().collect();
    assert!(all.len() == 4 && !all.contains(&0), "{all:x?}");
}

/// `cargo xtask run --debug`, with the real gdb: the machine stands at its first instruction, and gdb knows functions and lines.
#[test]
fn gdb_finds_functions_and_lines_of_a_machine_that_waits_for_it() {
    let machine = alea().append("console=ttyS0 quiet alea.selftest=only").debugged(true);
    let guest = Guest::start(&machine).unwrap();
    let stub = guest.debugger_socket().unwrap();
    assert!(process::which("gdb").is_some(), "gdb is missing: `cargo xtask test` installs it");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch"]).arg(paths::kernel());
    let target = format!("target remote {}", stub.display());
    for command in [&target, "break kernel_main", "continue", "bt", "list", "delete", "detach"] {
        gdb.args(["-ex", command]);
    }
    let said = process::output(&mut gdb).unwrap();
    for words in [
        "Breakpoint 1, kernel_main () at kernel/src/main.rs:",
        "in on_boot_stack () at kernel/src/arch/x86_64/boot/enter.rs:",
        "fn kernel_main(",
    ] {
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
    }
    let outcome = guest.finish(Limits::total(PATIENCE)).unwrap().powered_off().unwrap();
    assert!(outcome.output.is_empty(), "{}", outcome.output);
}

/// What stands in `text` between two lines that the test has gdb print.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from} in {text}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} in {text}")).0
}

#[test]
fn gdb_shows_the_threads_of_a_machine_that_sleeps_and_its_log() {
    debug::prepare().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (socket, log) = (folder.path().join("gdb"), folder.path().join("log"));
    let machine = alea().smp(2).direct(
        paths::debugger_kernel(),
        Some(paths::initramfs()),
        "console=ttyS0 rdinit=/bin/sleep -- 1000",
    );
    let _standing = Standing::start(&machine, &socket, &log).unwrap();
    let commands = [
        "set pagination off",
        "break alea_kernel::syscall::time::clock_nanosleep",
        "continue",
        "echo [ps]",
        "alea-ps",
        "echo [one]",
        "alea-bt 1",
        "echo [two]",
        "alea-bt 2",
        "echo [log]",
        "alea-log 2",
        "echo [value]",
        "print $alea_current() == $alea_task(1)",
        "print $alea_task(1).tid.v.value",
        "echo [end]",
        "alea-bt 77",
    ];
    let commands: Vec<String> = commands.map(str::to_owned).into();
    // A breakpoint that is never reached would have gdb wait for ever.
    let gdb = debug::gdb(&socket, &commands).unwrap();
    let mut bounded = Command::new("timeout");
    bounded
        .arg(PATIENCE.as_secs().to_string())
        .arg(gdb.get_program())
        .args(gdb.get_args())
        .arg("-batch");
    bounded.envs(gdb.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let out = bounded.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let threads = between(&text, "[ps]", "[one]");
    let line = |name: &str| threads.lines().find(|line| line.contains(name)).unwrap_or("");
    assert!(line("sleep").contains("R  on CPU"), "{text}");
    assert!(line("tty").ends_with("drivers::tty::console::wait_for_bytes"), "{text}");
    let running = between(&text, "[one]", "[two]");
    assert!(
        running.contains("clock_nanosleep") && running.contains("alea_syscall_entry"),
        "{text}"
    );
    let asleep = between(&text, "[two]", "[log]");
    let place = asleep.find("process::sched::schedule::switch_to_next");
    assert!(place.is_some() && place < asleep.find("drivers::tty::console::run_input"), "{text}");
    assert!(
        between(&text, "[log]", "[value]").ends_with("Run /bin/sleep as init process\n"),
        "{text}"
    );
    assert_eq!(between(&text, "[value]", "[end]"), "$1 = true\n$2 = 1\n");
}
