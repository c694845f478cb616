//! Figures about all tasks, for /proc/stat and /proc/loadavg.

use crate::base::percpu;
use crate::fs::procfs::{CpuTotals, Totals};
use crate::mm::fallible::TryCollect;
use crate::process::sched::{self, State};
use crate::process::tree::table::{self, for_each_process};
use crate::time;
use abi::Result;

pub(super) fn totals() -> Result<Totals> {
    let now = time::since_boot_ns();
    let system = sched::system_ns();
    let cpus = (0..percpu::cpus_online())
        .map(|cpu| {
            let idle = sched::idle_ns(cpu);
            let busy = now.saturating_sub(idle);
            let system = if cpu == 0 { system.min(busy) } else { 0 };
            CpuTotals { user: busy - system, system, idle, ..CpuTotals::default() }
        })
        .try_to_vec()?;
    let mut blocked = 0;
    for_each_process(&mut |process| {
        process.for_each_thread(&mut |thread| {
            // Kernel threads wait for work so.
            let waits = thread.sched.state() == State::Uninterruptible;
            blocked += u32::from(waits && !thread.is_kernel_thread());
        });
    });
    let (forks, last_pid) = table::given();
    Ok(Totals {
        cpus,
        load: sched::load_average().map(|load| (load * 100) >> 11),
        running: sched::runnable() as u32,
        tasks: table::count() as u32,
        blocked,
        last_pid: last_pid.unsigned_abs(),
        switches: sched::switches(),
        forks,
    })
}
