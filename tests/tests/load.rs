//! How CPUs are shared among many: a sample of `cargo xtask load`, Alea alone.

use alea_tests::{alea, boot};
use xtask_bench::load::{Numbers, command_line, read};

fn measured(only: &str, ms: u32, cpus: u32) -> Numbers {
    let is_counted = cpus == 1;
    let line = command_line(only, ms, is_counted);
    let machine = alea()
        .smp(cpus)
        .icount(is_counted)
        .initrd(xtask_host::paths::programs_initramfs())
        .append(&line);
    let outcome = boot(&machine).unwrap().powered_off().unwrap();
    read(&outcome.output).unwrap()
}

/// Instructions are counted, so that the figures are the same on a busy host: 1 ns each.
#[test]
fn who_is_woken_hardly_waits_and_hundreds_talk() {
    let numbers =
        measured("hack_pipes_40_threads,sleeper_beside_4_per_cpu,wake_1*,shares_of_equals", 300, 1);
    for (row, most) in [
        ("hack_pipes_40_threads: message", 2_000.0),
        ("sleeper_beside_4_per_cpu: p99.9", 20_000.0),
        ("wake_1_worker_per_cpu: p99.9", 10_000.0),
        ("shares_of_equals: off", 10.0),
    ] {
        let number = numbers.get(row).unwrap_or_else(|| panic!("{row}: not in {numbers:?}"));
        assert!(*number <= most, "{row}: {number}");
    }
}

/// On a CPU on which nothing else runs: one computes alone, then another comes. It had the CPU as long as the first had been alone.
#[test]
fn who_was_alone_is_not_starved_by_who_comes() {
    let numbers = measured("shares_of_a_*", 1000, 2);
    assert_eq!(numbers.len(), 2, "{numbers:?}");
    for (row, off) in &numbers {
        assert!(*off < 60.0, "{row}: {off} %");
    }
}
