//! Several CPUs: they start, share the work, and stop together.
//!
//! What runs here is a sample, on as many CPUs as a small host has, since a CPU that waits for a core of the
//! host keeps the others waiting. `cargo xtask abi --smp 4`, also with `--debug-assertions`, and
//! `cargo xtask soak` are the long way.

use std::time::Duration;

use alea_tests::{PATIENCE, Shell, alea, alea_with_abi_programs, boot};
use xtask_check::abi::{self, Known};
use xtask_check::soak;
use xtask_guest::guest::{End, Guest};
use xtask_guest::qemu::{FAIR_CPU, Machine};
use xtask_host::paths;

/// Threads, wake-ups, shared memory and the ends of processes: where CPUs meet.
const SAMPLE: [&str; 18] = [
    "entry_blocked",
    "entry_edges",
    "futex",
    "futex_requeue",
    "mm_fork",
    "mm_protect",
    "pipe_basic",
    "poll",
    "proc_clone",
    "proc_fork",
    "proc_orphans",
    "sig_kill",
    "sig_wait",
    "stress_memory",
    "stress_processes",
    "thread_basic",
    "thread_exit",
    "thread_vectors",
];

/// Ways into the kernel and out of it: signals, faults, refused returns, single steps and breakpoints, tracers, the vDSO, execs that meet; and
/// where a space's two tables must not need frames that lie side by side.
const EDGES: [&str; 17] = [
    "entry_blocked",
    "entry_edges",
    "exec_state",
    "fork_fragmented",
    "mm_fork",
    "mm_protect",
    "proc_fork",
    "sig_context",
    "sig_faults",
    "sig_registers",
    "stress_memory",
    "thread_exit",
    "trace_debug",
    "trace_diverts",
    "trace_exec_races",
    "trace_regs",
    "vdso_traces",
];

#[test]
fn abi_programs_print_the_same_on_two_cpus() {
    print_the_same(&alea().smp(2), &SAMPLE);
}

/// On a CPU with Meltdown.
#[test]
fn abi_programs_print_the_same_on_isolated_tables() {
    print_the_same(&alea().cpu("Skylake-Client").smp(2), &EDGES);
}

/// NMIs come while programs go into the kernel and out of it, on each kind of tables: neither loses anything.
#[test]
fn nmis_at_the_edges_of_the_kernel_change_nothing() {
    const NMIS: usize = 1000;
    for cpu in ["Skylake-Client", FAIR_CPU] {
        let mut shell = Shell::start(&alea_with_abi_programs().cpu(cpu).smp(2)).unwrap();
        shell.run("echo 1 > /proc/sys/kernel/printk").unwrap();
        let told = shell.run(&format!("/usr/lib/alea/abi/entry_edges {NMIS}")).unwrap();
        assert_eq!(told.matches("all was kept: exit 0").count(), 2, "{cpu}:\n{told}");
        let sent = told.matches("Show backtrace of all active CPUs").count();
        assert_eq!(sent, NMIS, "{cpu}:\n{told}");
        // What each of them found, as far as the log goes back.
        let log = shell.run("dmesg -s 1000000").unwrap();
        for wanted in ["CPU 1 in user mode", "CPU 1 in kernel mode"] {
            assert!(log.contains(wanted), "{cpu}: not once {wanted:?}:\n{log}");
        }
        shell.power_off().unwrap();
    }
}

fn print_the_same(machine: &Machine, names: &[&str]) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let ran = abi::run_on(machine, &paths::kernel(), &names).unwrap();
    let known = Known::load().unwrap();
    let mut wrong = Vec::new();
    for name in &names {
        let got = ran.get(name).map_or("--- did not run\n", String::as_str);
        if let Err(why) = known.judge(name, got, &abi::expected(name).unwrap()) {
            wrong.push(format!("{name}:\n{why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_short_soak_loses_nothing() {
    let machine = soak::boots(alea().smp(2), &paths::kernel(), Duration::from_secs(10));
    let outcome = boot(&machine).unwrap();
    assert!(soak::is_good(&outcome), "{}", outcome.describe());
}

#[test]
fn all_numbers_of_cpus_start() {
    for cpus in [3, 16] {
        let machine = alea().smp(cpus).append("console=ttyS0");
        let mut guest = Guest::start(&machine).unwrap();
        guest.wait_for(&format!("{cpus} CPUs, started"), PATIENCE).unwrap();
        guest.wait_for("Run /init", PATIENCE).unwrap();
        guest.stop().unwrap();
    }
}

#[test]
fn a_panic_shows_what_every_cpu_does() {
    let machine = alea().smp(3).append("console=ttyS0 alea.crash=panic panic=-1");
    let outcome = boot(&machine).unwrap();
    assert_eq!(outcome.end, End::Panicked, "{}", outcome.describe());
    for cpu in [1, 2] {
        let line = format!("CPU {cpu} in kernel mode at");
        assert!(outcome.output.contains(&line), "no {line:?} in {}", outcome.describe());
    }
}
