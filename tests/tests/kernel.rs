//! The kernel's own tests of its live parts, and its way of ending: every deliberate fault gives one
//! panic line that names it, a call trace, and QEMU's panic status.

use std::process::Command;

use alea_tests::boot;
use xtask_guest::guest::{End, Outcome, PANIC};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// The bare kernel: these tests need no initramfs.
fn kernel(append: &str) -> Machine {
    paths::require(&[paths::kernel()]).unwrap_or_else(|error| panic!("{error:#}"));
    Machine::new(paths::kernel()).append(&format!("console=ttyS0 {append}"))
}

fn passes_selftests(machine: &Machine) {
    let outcome = boot(machine).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    assert!(outcome.output.contains("selftest: all passed"), "{}", outcome.describe());
}

fn crash(kind: &str) -> Outcome {
    boot(&kernel(&format!("panic=-1 alea.crash={kind}")).cpu("max")).unwrap()
}

#[test]
fn selftests_pass_on_max() {
    passes_selftests(&kernel("alea.selftest=only").cpu("max"));
}

#[test]
fn selftests_pass_on_qemu64() {
    passes_selftests(&kernel("alea.selftest=only").cpu("qemu64"));
}

#[test]
fn selftests_pass_without_smap_and_fast_strings() {
    passes_selftests(&kernel("alea.selftest=only").cpu("max,smap=off,erms=off,fsrm=off,la57=off"));
}

#[test]
fn selftests_pass_with_64_mib() {
    passes_selftests(&kernel("alea.selftest=only").cpu("max").memory("64M"));
}

#[test]
fn system_calls_begin_at_different_places_of_the_stack() {
    passes_selftests(&kernel("alea.selftest=only randomize_kstack_offset=on").cpu("max"));
    passes_selftests(&kernel("alea.selftest=only randomize_kstack_offset=on").cpu("qemu64"));
}

#[test]
fn memory_is_zeroed_when_taken_and_when_given_back() {
    for words in ["init_on_alloc=1", "init_on_free=1", "init_on_alloc=on init_on_free=on"] {
        let kernel = kernel(&format!("alea.selftest=only {words}")).smp(2);
        passes_selftests(&kernel);
    }
}

#[test]
fn faults_of_the_kernel_are_named() {
    for (kind, text) in [
        ("panic", "alea.crash=panic"),
        ("ud2", "invalid opcode in kernel mode"),
        ("null", "null pointer access at 0x0"),
        ("write-text", "page fault in kernel mode"),
        ("nx", "page fault in kernel mode"),
        ("stack", "kernel stack overflow"),
    ] {
        let outcome = crash(kind);
        assert_eq!(outcome.end, End::Panicked, "{kind}: {}", outcome.describe());
        let line = outcome.output.lines().find(|line| line.contains(PANIC)).unwrap_or_default();
        assert!(line.contains(text), "{kind}: {line:?}\n{}", outcome.describe());
        let trace = outcome.output.lines().filter(|line| line.starts_with(" [<ffffffff8")).count();
        assert!(trace > 1, "{kind}: no call trace\n{}", outcome.describe());
    }
}

/// What plain QEMU shows: the text once, and a line that binutils understand.
#[test]
fn a_panic_says_once_what_happened_and_how_it_is_symbolised() {
    for (kind, function) in [("panic", "commit at"), ("ud2", "commit at")] {
        let outcome = boot(&kernel(&format!("quiet panic=-1 alea.crash={kind}"))).unwrap();
        let text = outcome.output.split_once(PANIC).map_or("", |(_, text)| text);
        let said = text.lines().next().unwrap_or_default();
        assert_eq!(text.matches(said.trim()).count(), 1, "{}", outcome.output);
        let line = text.lines().find_map(|line| line.split_once("lines: ")).unwrap_or_default().1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["addr2line", options, "kernel.elf", addresses @ ..] = &words[..] else {
            panic!("{}", outcome.output)
        };
        let mut addr2line = Command::new("addr2line");
        let found = addr2line.arg(options).arg(paths::kernel()).args(addresses).output().unwrap();
        let found = String::from_utf8_lossy(&found.stdout);
        assert!(found.contains(function) && found.contains("crash.rs:"), "{line}\n{found}");
    }
}
