//! What is said of the flaws of the CPU, on one model after the other, beside Linux: both do nothing against them, and both what they can.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use alea_tests::{Shell, alea_with_abi_programs, boot};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// A model of each kind: those that Linux's tables name, and those that they do not.
const MODELS: [&str; 8] =
    ["qemu64", "max", "Nehalem", "Haswell", "Skylake-Server", "Denverton", "EPYC", "EPYC-Genoa"];

/// What Alea says otherwise than such a Linux, and why it may.
const OTHERWISE: [(&str, &str, &str); 1] = [
    // Linux speaks for its KVM.
    ("itlb_multihit", "KVM: Mitigation: VMX unsupported", "Processor vulnerable"),
];

/// Models with what is worked against.
const WORKED_AGAINST: [&str; 5] =
    ["qemu64", "Haswell", "Skylake-Server", "Snowridge", "EPYC-Genoa"];

/// What Linux works against and Alea does not, or does only in part: it says that the CPU is vulnerable.
const VULNERABLE: [&str; 5] = [
    "indirect_target_selection",
    "retbleed",
    "spec_rstack_overflow",
    "spec_store_bypass",
    "spectre_v2",
];

fn image() -> tempfile::TempPath {
    let mut tree = Tree::new();
    for dir in ["bin", "sys", "proc"] {
        tree.dir(dir, 0o755);
    }
    tree.host_file("bin/busybox", 0o755, &paths::busybox()).expect("BusyBox is there");
    tree.symlink("bin/sh", "busybox");
    let init = "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t sysfs sys /sys\n$BB mount -t proc proc /proc\necho '<<<'\n\
                echo \"flag:$($BB grep -o -w -m1 pti /proc/cpuinfo)\"\n\
                cd /sys/devices/system/cpu/vulnerabilities && $BB grep . *\necho '>>>'\n$BB poweroff -f\n";
    tree.file("init", 0o755, init);
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&tree.archive()).expect("room for it");
    file.into_temp_path()
}

/// The files by name; and whether /proc/cpuinfo says that page tables are isolated.
fn files(kernel: &Path, model: &str, image: &Path, words: &str) -> BTreeMap<String, String> {
    // A host that is busy makes Linux take its timer for a broken one.
    let line = format!("console=ttyS0 quiet no_timer_check {words}");
    let machine = Machine::new(kernel).initrd(image).append(&line).cpu(model);
    let outcome = boot(&machine).unwrap();
    let told = outcome.output.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>"));
    let (told, _) = told.unwrap_or_else(|| panic!("nothing was told\n{}", outcome.describe()));
    let pairs = told.lines().filter_map(|line| line.trim().split_once(':'));
    pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// What Linux says, but for what Alea may say otherwise.
fn wanted(model: &str, image: &Path, words: &str) -> BTreeMap<String, String> {
    let mut wanted = files(&paths::vmlinuz(), model, image, words);
    assert!(wanted.len() >= 17, "{model}: {wanted:?}");
    for (name, linux, alea) in OTHERWISE {
        let text = wanted.get_mut(name).expect("Linux has the file");
        if text == linux {
            alea.clone_into(text);
        }
    }
    wanted
}

#[test]
fn a_model_has_the_flaws_that_it_has_on_linux() {
    let image = image();
    for model in MODELS {
        let words = "mitigations=off";
        let wanted = wanted(model, &image, words);
        assert_eq!(files(&paths::kernel(), model, &image, words), wanted, "{model}");
    }
}

#[test]
fn what_is_worked_against_is_so_as_on_linux() {
    let image = image();
    let words = [
        ("", &WORKED_AGAINST[..]),
        ("mds=off nospectre_v1", &["Skylake-Server"]),
        ("nopti", &["Skylake-Server"]),
    ];
    for (words, models) in words {
        for model in models {
            let (mut wanted, found) =
                (wanted(model, &image, words), files(&paths::kernel(), model, &image, words));
            for name in VULNERABLE {
                let text = &found[name];
                if text.starts_with("Vulnerable") {
                    wanted.insert(name.into(), text.clone());
                }
            }
            assert_eq!(found, wanted, "{model} with {words:?}");
        }
    }
}

/// How often the CPU is told as two processes take turns: its register only when it is to be something else, a barrier when
/// one of them asks for it. Which registers there are is pretended: the emulator ignores what is written.
#[test]
fn the_cpu_is_told_of_tasks_that_ask() {
    const PER_TURN: [(&str, &str); 3] = [
        (
            "",
            "nobody: register 0, barriers 0|stores of one: register 2, barriers 0|stores of both: register 0, barriers 0|\
             branches of one: register 0, barriers 2|branches of both: register 0, barriers 2",
        ),
        (
            "spectre_v2_user=on spec_store_bypass_disable=on",
            "nobody: register 0, barriers 2|stores of one: register 0, barriers 2|stores of both: register 0, barriers 2|\
             branches of one: register 0, barriers 2|branches of both: register 0, barriers 2",
        ),
        (
            "mitigations=off",
            "nobody: register 0, barriers 0|stores of one: register 0, barriers 0|stores of both: register 0, barriers 0|\
             branches of one: register 0, barriers 0|branches of both: register 0, barriers 0",
        ),
    ];
    for (words, wanted) in PER_TURN {
        let machine = predicting(words);
        let mut shell = Shell::start(&machine).unwrap();
        let told = shell.run("/usr/lib/alea/abi/proc_speculation turns").unwrap();
        let turns = told.lines().map(str::trim).filter(|line| line.contains("barriers "));
        assert_eq!(turns.collect::<Vec<_>>().join("|"), wanted, "{words}:\n{told}");
        shell.power_off().unwrap();
    }
}

/// A machine whose CPU is taken for one with the predictors' registers.
fn predicting(words: &str) -> Machine {
    alea_with_abi_programs().append(&format!("console=ttyS0 alea.predictors=1 {words}"))
}

/// What a task may choose where there is something to choose, as /proc shows it.
#[test]
fn choices_are_shown_and_inherited() {
    let words = "spectre_v2_user=seccomp spec_store_bypass_disable=seccomp";
    let machine = predicting(words);
    let mut shell = Shell::start(&machine).unwrap();
    let told = shell.run("/usr/lib/alea/abi/proc_speculation").unwrap();
    for wanted in [
        "Speculation_Store_Bypass:\tthread vulnerable",
        "Speculation_Store_Bypass:\tthread force mitigated",
        "SpeculationIndirectBranch:\tconditional enabled",
        "SpeculationIndirectBranch:\tconditional disabled",
        "SpeculationIndirectBranch:\tconditional force disabled",
    ] {
        assert!(told.contains(wanted), "{wanted:?} is missing:\n{told}");
    }
    let all = shell.run("cat /sys/devices/system/cpu/vulnerabilities/spec_store_bypass").unwrap();
    let wanted = "Mitigation: Speculative Store Bypass disabled via prctl and seccomp";
    assert!(all.contains(wanted), "{all}");
    shell.power_off().unwrap();
}
