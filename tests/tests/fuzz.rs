//! A few rounds of the fuzzer, of one seed: `cargo xtask fuzz` is the real thing.

use alea_tests::{alea, boot};
use xtask_check::fuzz;
use xtask_guest::inject::Told;

#[test]
fn the_kernel_survives_some_rounds_of_random_calls() {
    let line = fuzz::command_line("fuzz.seed=1 fuzz.rounds=9 fuzz.seconds=100000");
    let outcome = boot(&alea().memory("256M").append(&line)).unwrap();
    assert_eq!(fuzz::trouble(&outcome), None, "{}", outcome.describe());
}

#[test]
fn no_allocation_that_fails_ends_the_kernel() {
    let line = "fuzz.seed=2 fuzz.rounds=20 fuzz.seconds=100000 alea.fail_alloc=8,2";
    let outcome = boot(&alea().memory("256M").append(&fuzz::command_line(line))).unwrap();
    assert_eq!(fuzz::trouble(&outcome), None, "{}", outcome.describe());
    let mut told = Told::default();
    told.add(&outcome.output);
    assert!(told.failed > 1000 && told.frames > 100, "{told}: too few to say anything");
}
