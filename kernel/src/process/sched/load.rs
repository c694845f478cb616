//! Load averages, sampled when they are asked for.
//!
//! Tickless: nothing runs every five seconds. The three averages decay by the time since the last look at
//! them, with the number of runnable tasks as it is now.
//!
//! Owns the averages. Never armed: no timer runs for them. Locks: `Leaf`.

use super::queue;
use crate::base::percpu;
use crate::sync::{SpinLock, level};
use crate::time;

/// Bits after the binary point, as /proc/loadavg and sysinfo use them.
const SHIFT: u32 = 11;
const ONE: u64 = 1 << SHIFT;
/// e^(-5s/1min), e^(-5s/5min), e^(-5s/15min).
const DECAY: [u64; 3] = [1884, 2014, 2037];
const STEP_NS: u64 = 5_000_000_000;

struct Averages {
    values: [u64; 3],
    sampled_ns: u64,
}

static AVERAGES: SpinLock<Averages, level::Leaf> =
    SpinLock::new(Averages { values: [0; 3], sampled_ns: 0 });

/// How many tasks are runnable, the running ones included.
pub fn runnable() -> u64 {
    let of_cpu = |cpu| {
        let queue = queue::lock(cpu);
        queue.len() as u64 + u64::from(!queue.running.is_idle)
    };
    (0..percpu::cpus_online()).map(of_cpu).sum()
}

/// The averages over 1, 5 and 15 minutes, with 11 bits after the point.
pub fn load_average() -> [u64; 3] {
    let now = time::since_boot_ns();
    // The one who asks does not count.
    let active = runnable().saturating_sub(1) * ONE;
    let mut averages = AVERAGES.lock();
    let steps = now.saturating_sub(averages.sampled_ns) / STEP_NS;
    averages.sampled_ns = averages.sampled_ns.saturating_add(steps * STEP_NS);
    for (value, decay) in averages.values.iter_mut().zip(DECAY) {
        for _ in 0..steps.min(1000) {
            *value = (*value * decay + active * (ONE - decay)) >> SHIFT;
        }
    }
    averages.values
}
