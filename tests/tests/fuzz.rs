//! A few rounds of the fuzzer, of one seed: `cargo xtask fuzz` is the real thing. And memory that really runs out, a sample of
//! `cargo xtask exhaust`: root must be able to fork meanwhile and afterwards, and his own small process must not be shot for it.

use alea_tests::{alea, boot};
use xtask_check::{abi, exhaust, fuzz};
use xtask_guest::inject::{Rate, Told};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// The fuzzer wants little memory, and none of the ABI programs.
fn machine() -> Machine {
    alea().memory("256M").initrd(paths::programs_initramfs())
}

#[test]
fn the_kernel_survives_some_rounds_of_random_calls() {
    let line = fuzz::command_line("fuzz.seed=1 fuzz.rounds=9 fuzz.seconds=100000");
    let outcome = boot(&machine().append(&line)).unwrap();
    assert_eq!(fuzz::trouble(&outcome), None, "{}", outcome.describe());
}

/// What belongs to no object that is counted is noticed too.
#[test]
fn memory_that_stays_is_noticed() {
    let line = "fuzz.seed=1 fuzz.kind=calls fuzz.rounds=11 fuzz.seconds=100000 fuzz.leak=20000";
    let outcome = boot(&machine().append(&fuzz::command_line(line))).unwrap();
    let trouble = fuzz::trouble(&outcome).unwrap_or_default();
    assert!(trouble.contains("bytes were lost"), "{trouble}\n{}", outcome.describe());
    assert!(trouble.contains("pages_heap_large +5"), "{trouble}\n{}", outcome.describe());
}

#[test]
fn no_allocation_that_fails_ends_the_kernel() {
    let line = "fuzz.seed=2 fuzz.rounds=20 fuzz.seconds=100000 alea.fail_alloc=8,2";
    let outcome = boot(&machine().append(&fuzz::command_line(line))).unwrap();
    assert_eq!(fuzz::trouble(&outcome), None, "{}", outcome.describe());
    let mut told = Told::default();
    told.add(&outcome.output);
    assert!(told.failed > 1000 && told.frames > 100, "{told}: too few to say anything");
}

/// The program itself is spared, and its children, which do the work, are not.
#[test]
fn what_fails_for_want_of_memory_changes_nothing() {
    let rate = Rate { every: 8, seed: 1, generation: Some(2) };
    let names = ["undone".to_owned()];
    let ran = abi::run_failing(&Machine::new(paths::kernel()), &paths::kernel(), &names, rate);
    let (found, told) = ran.unwrap();
    assert_eq!(found, []);
    assert!(told.failed > 1000, "{told}: too few to say anything");
}

/// Each allocation of each call fails in turn.
#[test]
fn what_cannot_be_given_is_not_taken() {
    let names = ["sock_taken", "taken", "task_taken", "uring_taken"].map(String::from);
    let ran = abi::run_naming(&Machine::new(paths::kernel()), &paths::kernel(), &names);
    let (found, told) = ran.unwrap();
    assert_eq!(found, []);
    assert!(told.failed > 60, "{told}: too few to say anything");
}

/// Kernel memory of each sort: descriptors, buffers, pages of files that only a descriptor holds, inodes.
const SAMPLE: &str =
    "exhaust.only=eventfds,pipes,memfds,proc_files,unix_streams,udp_data exhaust.ms=1500";

#[test]
fn who_takes_kernel_memory_pays_for_it() {
    let machine = machine().memory("128M").smp(2);
    let outcome = boot(&exhaust::boots(machine, &paths::kernel(), SAMPLE)).unwrap();
    assert_eq!(exhaust::trouble(&outcome), None, "{}", outcome.describe());
    assert_eq!(exhaust::harm_to_root(&outcome), Vec::<String>::new(), "{}", outcome.describe());
}

/// The queues of timers keep the room of the most timers that there ever were, some MiB: what is lost is not asked for here.
#[test]
fn who_takes_all_timers_leaves_some_for_root() {
    let words = "exhaust.only=timerfds,posix_timers exhaust.ms=1500";
    let machine = machine().memory("128M").smp(2);
    let outcome = boot(&exhaust::boots(machine, &paths::kernel(), words)).unwrap();
    assert!(outcome.output.contains("exhaust-end"), "{}", outcome.describe());
    assert_eq!(exhaust::harm_to_root(&outcome), Vec::<String>::new(), "{}", outcome.describe());
}
