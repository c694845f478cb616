//! The time-stamp counter as a clock: its rate (`calibrate`), and whether those of all CPUs agree (`tsc_check`).

pub mod calibrate;
pub(super) mod tsc_check;
