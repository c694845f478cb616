//! Linux and Alea boot in turn, and an exec, a fork, a shell and a draw cost no more of Linux's figure than the design's goals allow,
//! whichever generator serves. Where KVM works times are compared, elsewhere instructions.

use xtask_bench::bench;

#[test]
fn exec_fork_shell_and_getrandom_meet_their_goals() {
    let ratios = bench::mission().unwrap();
    assert_eq!(ratios.len(), 12, "four benchmarks under three generators");
    for one in &ratios {
        println!(
            "{}, {}: {:.3} of Linux's {} {}, goal {}",
            one.name,
            one.generator,
            one.ratio(),
            one.linux,
            one.unit,
            one.goal
        );
    }
    let missed: Vec<_> = ratios.iter().filter(|one| one.ratio() > one.goal).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
