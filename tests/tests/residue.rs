//! What a draw leaves behind: the machine is stopped after each, and everything in it is searched.

use xtask_check::residue::reading::{Boot, Reading, read};
use xtask_host::paths;

/// Stops of one CPU, at the least: each interface in each length class.
const STOPS: usize = 250;

/// All of `userland/random/residue.c` but AT_RANDOM, which stays on the stack of exec: docs/random.md.
const INTERFACES: [&str; 15] = [
    "getrandom",
    "getrandom_nonblock",
    "getrandom_random",
    "getrandom_insecure",
    "random",
    "urandom",
    "urandom_pread",
    "urandom_readv",
    "vdso",
    "reseeded",
    "reseeded_vdso",
    "fault",
    "fresh",
    "uuid",
    "write",
];

fn reading(cpus: u32) -> Reading {
    let kernel = paths::kernel();
    let interfaces = INTERFACES.map(String::from);
    read(&Boot { kernel: &kernel, cpus, interfaces: &interfaces, switch: None }, usize::MAX)
        .unwrap()
}

#[test]
fn nothing_is_left_behind_by_a_draw() {
    for cpus in [1, 2] {
        let reading = reading(cpus);
        let findings: Vec<_> = reading.findings.iter().map(ToString::to_string).collect();
        // The program's own start is read, too.
        let findings: Vec<_> =
            findings.into_iter().filter(|finding| !finding.starts_with("at_random ")).collect();
        assert!(findings.is_empty(), "{cpus} CPUs:\n{}", findings.join("\n"));
        assert!(reading.stops > STOPS * cpus as usize, "only {} stops", reading.stops);
        assert!(reading.candidates > 100, "nothing looked like a key: nothing was searched");
    }
}
