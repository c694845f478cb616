//! The published experiments at a small scale (`cargo xtask experiments`): they come to their end on both kernels, and no rung costs more
//! instructions on Alea than on Linux. An RDRAND that is charged as the article's was is most of an exec, as there.

use xtask_bench::experiments;

#[test]
fn no_rung_costs_more_than_on_linux() {
    no_rung_costs_more(1);
}

#[test]
fn nor_on_four_cpus() {
    no_rung_costs_more(4);
}

fn no_rung_costs_more(cpus: u32) {
    for done in experiments::sample(0.002, cpus).unwrap() {
        for (rung, linux, alea) in done.rungs() {
            // What never enters the kernel costs the same, but for the calls in between.
            assert!(
                alea <= linux * 1.01,
                "{}, {rung}: {alea} instructions, {linux} on Linux",
                done.name
            );
        }
        if done.name == "tax" {
            // The article's share was 53.3 %, of an exec that drew twice.
            let share = done.in_first_way("random, of an exec").unwrap();
            assert!(share > 50.0, "random bytes are {share} % of an exec with a taxed RDRAND");
        }
    }
}
