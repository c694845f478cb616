//! Clocks and timers.
//!
//! Owns the scale of the TSC (`scale`), the offset of the wall clock (`clock`), how both change (`adjust`), and one timer
//! queue per CPU (`timer`), beside which the profiler looks (`look`). Reading a clock waits for nobody but a change of its speed, and takes one multiplication. The CPU is tickless: its timer is
//! armed for the nearest timer, the end of the running task's slice and, while a task runs, its tick and a profiler's look.
#![deny(unsafe_code)]

mod adjust;
mod clock;
mod look;
mod nanos;
mod scale;
pub mod selftest;
mod start;
mod timer;
mod wall;

pub use adjust::{adjust, set_realtime, show_to_programs};
pub use alea_ntp::Permission;
pub use clock::{
    ClockId, busy_wait_seconds, clock_now, monotonic, now_on, passed, realtime, resolution, signed,
    unix_seconds,
};
pub use look::set_look;
pub use nanos::Nanos;
pub use scale::{since_boot_ns, tsc_hz};
pub use start::init;
pub use timer::{
    SAMPLE_NS, TimerId, TimerRoom, TimerTarget, arm, arm_on, armed, begin_looks, cancel,
    cancel_and_wait, for_each_room, prepare_cpu, run_deferred, set_slice_end, slice_ends_by,
    start_samples,
};
pub use wall::{times_set, when_set};
