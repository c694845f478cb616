//! A thread that looks whether the other CPUs still take interrupts; of one that does not it tells where it is,
//! and where all the others are.

use crate::base::percpu::{cpu_id, cpus_online};
use crate::process::sched;

/// How often it looks, and so the least time that a CPU must be silent. Virtual CPUs may wait long for a real
/// one.
const ROUND_NS: u64 = 20_000_000_000;

/// The body of the thread.
pub fn run() {
    let mut reported = 0u64;
    loop {
        let mut asked = 0u64;
        for cpu in (0..cpus_online()).filter(|&cpu| cpu != cpu_id()) {
            if sched::ask_to_look(cpu) {
                asked |= 1 << cpu;
            }
        }
        sched::schedule_timeout(ROUND_NS);
        let silent = (0..cpus_online())
            .filter(|&cpu| asked >> cpu & 1 != 0 && !sched::has_looked(cpu))
            .fold(0u64, |all, cpu| all | 1 << cpu);
        if silent & !reported != 0 {
            log::warn!("watchdog: CPUs {silent:#x} take no interrupts");
            crate::diag::panic::log_all_cpus();
        }
        reported = silent;
    }
}
