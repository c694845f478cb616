//! What a draw leaves behind: the machine is stopped after each, and everything in it is searched.

use xtask_check::residue::reading::{Boot, read};
use xtask_host::paths;

/// Stops of one CPU, at the least: each interface in each length class.
const STOPS: usize = 250;

#[test]
fn nothing_is_left_behind_by_a_draw() {
    for cpus in [1, 2] {
        let kernel = paths::kernel();
        let boot = Boot { kernel: &kernel, cpus, interfaces: &[], cpu: None, switch: None };
        let reading = read(&boot, usize::MAX).unwrap();
        let findings: Vec<_> = reading.findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{cpus} CPUs:\n{}", findings.join("\n"));
        assert!(reading.stops > STOPS * cpus as usize, "only {} stops", reading.stops);
        assert!(reading.candidates > 100, "nothing looked like a key: nothing was searched");
        assert!(reading.fresh >= 4 * cpus as usize, "no reseed was seen");
        assert!(reading.given >= 2 * (1024 + 64), "devices gave only {} bytes", reading.given);
    }
}
