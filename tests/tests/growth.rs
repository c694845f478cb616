//! What one more costs when there are a thousand already, and on two CPUs: a sample of the report's curves.
//!
//! Instructions are counted, so that the figures are the same on a busy host.

use alea_tests::{alea, boot};
use xtask_bench::growth::{Grown, OVER_CPUS};

/// The steepest of today's curves doubles: a page beside a thousand mappings. Work for each of the thousand would
/// show as far more.
const STEEPEST: f64 = 3.0;

fn measure(cpus: u32, words: &str) -> Grown {
    let line = format!("console=ttyS0 quiet rdinit=/usr/lib/alea/growth {words}");
    let machine = alea().icount(true).smp(cpus).append(&line);
    let outcome = boot(&machine).unwrap().powered_off().unwrap();
    let mut grown = Grown::default();
    assert!(grown.read(&outcome.output), "it did not come to its end: {}", outcome.describe());
    assert!(grown.refused().is_empty(), "{:?}", grown.refused());
    grown
}

fn cost(grown: &Grown, curve: &str, size: f64) -> f64 {
    let found = grown.points().iter().find(|(name, n, _)| name == curve && *n == size);
    found.unwrap_or_else(|| panic!("{curve} has no figure at {size}")).2
}

#[test]
fn no_curve_rises_steeply_up_to_a_thousand() {
    let grown = measure(1, "alea.growth_max=1000");
    let curves = [
        "processes",
        "open_files",
        "directory",
        "mappings",
        "fork_pages",
        "timers",
        "epoll",
        "threads",
    ];
    for curve in curves {
        let (one, thousand) = (cost(&grown, curve, 1.0), cost(&grown, curve, 1000.0));
        assert!(thousand <= one * STEEPEST, "{curve}: {one} beside one, {thousand} beside 1000");
    }
}

#[test]
fn a_second_cpu_that_is_idle_adds_nothing() {
    let words = format!("alea.growth={OVER_CPUS}*");
    let [one, two] = [1, 2].map(|cpus| measure(cpus, &words));
    let names = |grown: &Grown| -> Vec<String> {
        grown.points().iter().map(|(name, ..)| name.clone()).collect()
    };
    assert_eq!(names(&one), names(&two));
    let [alone, beside] = [cost(&one, "cpus_getpid", 1.0), cost(&two, "cpus_getpid", 2.0)];
    assert!(beside <= alone * 1.05, "getpid: {alone} on one CPU, {beside} on two");
}
