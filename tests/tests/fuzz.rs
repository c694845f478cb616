//! A few rounds of the fuzzer, of one seed: `cargo xtask fuzz` is the real thing.

use alea_tests::{alea, boot};
use xtask_check::fuzz;

#[test]
fn the_kernel_survives_some_rounds_of_random_calls() {
    let line = fuzz::command_line("fuzz.seed=1 fuzz.rounds=9 fuzz.seconds=100000");
    let outcome = boot(&alea().memory("256M").append(&line)).unwrap();
    assert_eq!(fuzz::trouble(&outcome), None, "{}", outcome.describe());
}
