//! The settings of real-time tasks below /proc/sys/kernel.
//!
//! `sched_rr_timeslice_ms` is the slice of SCHED_RR. `sched_rt_runtime_us` and `sched_rt_period_us` are only checked against
//! each other: what they bound on Linux 6.12 is the time of SCHED_DEADLINE tasks, which do not exist here; what normal tasks
//! get beside real-time ones (`kernel/runq/src/share.rs`) depends on neither of them, as there.
//!
//! Owns the three numbers. Never moves a task. Locks: `Leaf`, for the two that depend on each other.

use crate::base::setting::Setting;
use crate::fs::procfs::register_setting;
use crate::sync::{SpinLock, level};
use abi::Result;
use core::sync::atomic::{AtomicI32, Ordering};

/// Shows the settings.
pub(in crate::process) fn register() -> Result<()> {
    register_setting("kernel/sched_rt_runtime_us", &Runtime)?;
    register_setting("kernel/sched_rt_period_us", &Period)?;
    register_setting("kernel/sched_rr_timeslice_ms", &RrSlice)
}

/// What Linux starts with.
const RR_SLICE_MS: i32 = 100;

static RR_SLICE: AtomicI32 = AtomicI32::new(RR_SLICE_MS);

/// How long a SCHED_RR task runs while its equals wait.
#[inline]
pub(super) fn rr_slice_ns() -> u64 {
    // Relaxed: a number of its own.
    u64::from(RR_SLICE.load(Ordering::Relaxed).unsigned_abs()) * 1_000_000
}

struct RrSlice;

impl Setting for RrSlice {
    fn shown(&self) -> i32 {
        RR_SLICE.load(Ordering::Relaxed)
    }

    /// Zero and less stand for what it was at first.
    fn set(&self, value: i32) -> bool {
        RR_SLICE.store(if value > 0 { value } else { RR_SLICE_MS }, Ordering::Relaxed);
        true
    }
}

/// Microseconds.
#[derive(Clone, Copy)]
struct Bandwidth {
    runtime: i32,
    period: i32,
}

static BANDWIDTH: SpinLock<Bandwidth, level::Leaf> =
    SpinLock::new(Bandwidth { runtime: 950_000, period: 1_000_000 });

/// No bound.
const UNBOUNDED: i32 = -1;

impl Bandwidth {
    fn may_be(self) -> bool {
        self.period >= 1 && (UNBOUNDED..=self.period).contains(&self.runtime)
    }
}

/// Sets what `change` changes, if that may be.
fn change(change: impl FnOnce(&mut Bandwidth)) -> bool {
    let mut held = BANDWIDTH.lock();
    let mut new = *held;
    change(&mut new);
    let may_be = new.may_be();
    if may_be {
        *held = new;
    }
    may_be
}

struct Runtime;

impl Setting for Runtime {
    fn shown(&self) -> i32 {
        BANDWIDTH.lock().runtime
    }

    fn set(&self, value: i32) -> bool {
        change(|bandwidth| bandwidth.runtime = value)
    }
}

struct Period;

impl Setting for Period {
    fn shown(&self) -> i32 {
        BANDWIDTH.lock().period
    }

    fn set(&self, value: i32) -> bool {
        change(|bandwidth| bandwidth.period = value)
    }
}
