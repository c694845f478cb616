//! The kernel's own tests of its live parts, and its way of ending: every deliberate fault gives one
//! panic line that names it, a call trace, and QEMU's panic status.

use std::collections::BTreeSet;
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

/// Three pages that all need, of code and the table of interrupts, and one for each CPU.
#[test]
fn isolated_tables_show_what_entries_need() {
    for (machine, pages) in [
        (kernel("alea.selftest=only").cpu("Skylake-Client").smp(4), 7),
        (kernel("alea.selftest=only pti=on randomize_kstack_offset=on").cpu("max"), 4),
        (kernel("alea.selftest=only pti=on").cpu("qemu64").memory("64M"), 4),
    ] {
        let outcome = boot(&machine).unwrap();
        assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
        for wanted in [&format!("show {pages} pages of the kernel"), "selftest: all passed"] {
            assert!(outcome.output.contains(wanted), "{wanted}: {}", outcome.describe());
        }
    }
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

/// Skylake clears its buffers on each way to user mode and fences on both ways in, the others do not or in part.
#[test]
fn code_is_chosen_for_the_cpu() {
    for (model, words, wanted) in [
        ("Skylake-Server", "", "5 places clear, 1 and 1 fence"),
        ("Skylake-Server", "nopti", "5 places clear, 1 and 1 fence"),
        ("Skylake-Server", "mitigations=off", "0 places clear, 0 and 0 fence"),
        ("Skylake-Server", "mds=off mmio_stale_data=off nopti", "0 places clear, 1 and 1 fence"),
        ("EPYC", "", "0 places clear, 0 and 1 fence"),
        ("Skylake-Server", "alea.predictors=1", "1 fills the return stack, 0 clears the history"),
        ("Skylake-Server", "alea.predictors=1 nospectre_v2", "0 fills the return stack, 0 clears"),
        (
            "Skylake-Server",
            "alea.predictors=held",
            "0 fills the return stack, 1 clears the history",
        ),
        (
            "Skylake-Server",
            "alea.predictors=held spectre_bhi=off",
            "0 fills the return stack, 0 clears",
        ),
        ("qemu64", "nospectre_v1", "0 places clear, 0 and 0 fence"),
        // Isolated tables where Meltdown is, and where they are asked for.
        ("Skylake-Client", "", "arch: 6 places change tables"),
        ("Skylake-Client", "nopti pti=auto", "arch: 6 places change tables"),
        ("Skylake-Client", "pti=on nopti", "arch: 0 places change tables"),
        ("Skylake-Client", "pti=off", "arch: 0 places change tables"),
        ("Skylake-Client", "pti=on mitigations=off", "arch: 0 places change tables"),
        ("EPYC", "pti=auto", "arch: 0 places change tables"),
        ("max", "", "arch: 0 places change tables"),
        ("max,smap=off,umip=off", "pti=on", "arch: 6 places change tables"),
    ] {
        let outcome = boot(&kernel(&format!("alea.selftest=only {words}")).cpu(model)).unwrap();
        assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
        assert!(outcome.output.contains(wanted), "{model} {words}: {}", outcome.describe());
    }
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
        let isolated = crash(&format!("{kind} pti=on"));
        assert_eq!(isolated.end, End::Panicked, "{kind}: {}", isolated.describe());
        assert!(isolated.output.contains(text), "{kind}: {}", isolated.describe());
    }
}

/// What a panic says of where the kernel lies: how far its image was moved, and where the area of stacks begins.
fn places(machine: &Machine) -> [u64; 2] {
    let outcome = boot(machine).unwrap();
    let line = outcome.output.lines().find(|line| line.starts_with("Kernel Offset: "));
    let number = |name: &str| {
        let digits = line?.split_once(&format!("{name}: 0x"))?.1;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        u64::from_str_radix(&digits[..end], 16).ok()
    };
    ["Offset", "stacks"]
        .map(|name| number(name).unwrap_or_else(|| panic!("no {name}: {}", outcome.describe())))
}

/// The image is moved by any number of pages, and the area of stacks by any number of GiB, drawn anew at each boot.
#[test]
fn the_kernel_lies_at_addresses_that_are_drawn() {
    const BOOTS: usize = 8;
    // First and last place, the step, and the lowest bits of a step of which some are set in eight draws.
    let areas = [
        (0x20_0000, 0x3fe0_0000, 1 << 12, 0x1f_f000),
        (0xffff_c900_0000_0000, 0xffff_fe80_0000_0000, 1 << 30, 0x7f_c000_0000),
    ];
    let machine = kernel("panic=-1 alea.crash=panic");
    let boots: Vec<_> = (0..BOOTS).map(|_| places(&machine)).collect();
    for (area, (first, last, step, low)) in areas.into_iter().enumerate() {
        let drawn: BTreeSet<u64> = boots.iter().map(|boot| boot[area]).collect();
        // Of 50,000 places two boots of eight have the same once in two thousand runs.
        assert_eq!(drawn.len(), BOOTS, "{drawn:x?}");
        assert!(drawn.iter().all(|at| at % step == 0 && (first..=last).contains(at)), "{drawn:x?}");
        assert_ne!(drawn.iter().fold(0, |mixed, at| mixed | at) & low, 0, "{drawn:x?}");
        let spread = drawn.last().unwrap() - drawn.first().unwrap();
        assert!(spread > (last - first) / 16, "all are close to each other: {drawn:x?}");
    }
    assert_eq!(places(&machine.in_place()), [0, areas[1].0]);
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
