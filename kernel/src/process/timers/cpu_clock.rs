//! [`CpuClock`]: the CPU time of a process or a thread as a clock that can be read and waited for.
//!
//! Nothing happens when such a clock reaches a time: who waits looks again, at the soonest when it can have.

use super::times::process_cpu_ns;
use crate::base::percpu;
use crate::process::task::current::{current, current_arc};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::tree::table::{lookup, lookup_task};
use crate::time::{self, Nanos};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};

/// The least time between two looks, as Linux's tick.
const TICK: Nanos = Nanos::from_millis(4);

/// A clock of CPU time. It does not keep alive whose time it tells.
#[derive(Clone)]
pub struct CpuClock {
    of: Of,
    user_only: bool,
    /// Linux counts it by ticks.
    by_tick: bool,
}

#[derive(Clone)]
enum Of {
    Process(Weak<Process>),
    Thread(Weak<Task>),
}

/// Whether it was waited for: somebody may still have it.
fn is_gone(process: &Arc<Process>) -> bool {
    let found = || lookup(process.pid());
    process.is_zombie() && found().is_none_or(|found| !Arc::ptr_eq(&found, process))
}

fn has_left(task: &Arc<Task>) -> bool {
    let found = || lookup_task(task.tid());
    task.is_exiting() && found().is_none_or(|found| !Arc::ptr_eq(&found, task))
}

impl CpuClock {
    /// CLOCK_PROCESS_CPUTIME_ID.
    pub fn own_process() -> Self {
        Self {
            of: Of::Process(Arc::downgrade(current().process())),
            user_only: false,
            by_tick: false,
        }
    }

    /// CLOCK_THREAD_CPUTIME_ID.
    pub fn own_thread() -> Self {
        Self { of: Of::Thread(Arc::downgrade(&current_arc())), user_only: false, by_tick: false }
    }

    /// From a negative clock id: `~pid << 3`, a bit for threads, and which time. EINVAL unless it names a
    /// process, or a thread of the caller's.
    pub fn from_raw(id: i32) -> Result<Self> {
        const PER_THREAD: i32 = 4;
        const USER: i32 = 1;
        const EXACT: i32 = 2;
        const NOT_CPU: i32 = 3;
        let (pid, which) = (!(id >> 3), id & 3);
        if which == NOT_CPU {
            return Err(Errno::EINVAL);
        }
        let task = current();
        let own = task.process();
        let clock = match (id & PER_THREAD != 0, pid) {
            (false, 0) => Self::own_process(),
            (true, 0) => Self::own_thread(),
            (false, pid) => {
                let process = lookup(pid).ok_or(Errno::EINVAL)?;
                Self { of: Of::Process(Arc::downgrade(&process)), user_only: false, by_tick: false }
            }
            (true, tid) => {
                let thread = lookup_task(tid).filter(|task| Arc::ptr_eq(task.process(), own));
                let thread = thread.ok_or(Errno::EINVAL)?;
                Self { of: Of::Thread(Arc::downgrade(&thread)), user_only: false, by_tick: false }
            }
        };
        Ok(Self { user_only: which == USER, by_tick: which != EXACT, ..clock })
    }

    /// The step of this clock in nanoseconds, as Linux has it: exact but for the times by tick.
    pub fn resolution(&self) -> u64 {
        if self.by_tick { TICK.0 } else { 1 }
    }

    /// Whether this is the clock of the thread that asks.
    pub fn is_own_thread(&self) -> bool {
        matches!(&self.of, Of::Thread(task) if core::ptr::eq(task.as_ptr(), &*current()))
    }

    /// Nanoseconds on this clock; none when what it counted is gone.
    pub fn now(&self) -> Option<u64> {
        Some(match &self.of {
            Of::Process(process) => {
                let process = process.upgrade().filter(|process| !is_gone(process))?;
                if self.user_only { process.usage().utime_ns } else { process_cpu_ns(&process) }
            }
            Of::Thread(task) => {
                let task = task.upgrade().filter(|task| !has_left(task))?;
                if self.user_only { task.times.usage().utime_ns } else { task.times.cpu_ns() }
            }
        })
    }

    /// When, on the monotonic clock, to see whether this clock has advanced by `left` nanoseconds.
    pub fn next_look(&self, left: u64) -> Nanos {
        let soonest = match &self.of {
            // There is always at least one CPU, and never that many that it would not fit.
            Of::Process(_) => left / percpu::cpus_online().max(1) as u64,
            Of::Thread(_) => left,
        };
        Nanos(time::monotonic().0.saturating_add(soonest.max(TICK.0)))
    }
}
