//! Clocks and timers.
//!
//! Owns the scale of the TSC (`clock`), the offset of the wall clock, and one timer queue per CPU
//! (`timer`). Reading a clock takes no lock and one multiplication. The CPU is tickless: its timer is
//! armed for the nearest timer or the end of the running task's slice, and for nothing else.
#![deny(unsafe_code)]

mod clock;
mod nanos;
pub mod selftest;
mod start;
mod timer;

pub use clock::{
    ClockId, busy_wait_seconds, clock_now, monotonic, realtime, resolution, set_realtime,
    show_to_programs, since_boot_ns, tsc_hz, unix_seconds,
};
pub use nanos::Nanos;
pub use start::init;
pub use timer::{
    SAMPLE_NS, TimerId, TimerRoom, TimerTarget, arm, armed, cancel, cancel_and_wait, prepare_cpu,
    run_deferred, set_slice_end, slice_runs, start_samples,
};
