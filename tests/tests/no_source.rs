//! A machine that has no entropy, and what programs do to make it hand out bytes all the same.

use alea_tests::{alea, boot};

#[track_caller]
fn says(log: &str, text: &str) {
    assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
}

/// Without RDRAND and with a clock that counts instructions there is nothing to be had: everything waits,
/// says so, or hands out what it may; then an administrator brings a seed.
#[test]
fn without_a_source_everything_waits_for_one() {
    let machine = alea().cpu("qemu64").icount(true).memory("256");
    let machine = machine.append("console=ttyS0 rdinit=/usr/lib/alea/nosource");
    let log = boot(&machine).unwrap().powered_off().unwrap().output;
    says(&log, "random: no source of entropy; waiting for user space to bring some");
    says(&log, "random: NOT ready");
    says(&log, "uninitialized urandom read (16 bytes read)");
    says(&log, "nosource: done");
    let facts: Vec<_> = log.lines().filter(|line| line.trim_end().ends_with(": yes")).collect();
    let denied: Vec<_> = log.lines().filter(|line| line.trim_end().ends_with(": no")).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    assert_eq!(facts.len(), 22, "{log}");
}

/// Nothing that a program without privileges can cause or time makes a machine without a source ready, and so no twin
/// boot of it hands out the same bytes as random: alarms, TLB flushes, output, early reads, writes to the pool.
#[test]
fn no_program_makes_a_machine_without_a_source_ready() {
    for _boot in 0..2 {
        let machine = alea().cpu("qemu64").icount(true).memory("256").smp(2);
        let machine = machine.append("console=ttyS0 rdinit=/usr/lib/alea/attack");
        let clock = ["-rtc", "base=2026-01-01T00:00:00,clock=vm"];
        let log = boot(&machine.args(clock)).unwrap().powered_off().unwrap().output;
        says(&log, "random: no source of entropy");
        says(&log, "attack: done 0");
        assert!(!log.contains("crng init done"), "an attacker made the service ready:\n{log}");
        assert!(!log.lines().any(|line| line.trim_end().ends_with(": no")), "{log}");
        assert_eq!(
            log.lines().filter(|line| line.trim_end().ends_with(": yes")).count(),
            8,
            "{log}"
        );
        says(&log, "state Empty");
    }
}
