//! The clocks: which of them follow from the page of data, and in which form they are told.
//!
//! Pure: the caller brings the page and the counter, and makes the system call for what is `None` here.
//! No locks of its own.

use crate::data::Data;

/// CLOCK_REALTIME.
pub const REALTIME: i32 = 0;

const SECOND: u64 = 1_000_000_000;

/// Clock numbers that run with the monotonic clock: MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME.
const MONOTONIC: u32 = 1 << 1 | 1 << 4 | 1 << 6 | 1 << 7;
/// Clock numbers that run with the wall clock: REALTIME, REALTIME_COARSE, TAI.
const WALL: u32 = 1 << 0 | 1 << 5 | 1 << 11;
/// Those that say to be coarse.
const COARSE: u32 = 1 << 5 | 1 << 6;
/// Their resolution in nanoseconds: a tick of 250 a second, as the kernel says.
const COARSE_RESOLUTION: i64 = 4_000_000;

/// Seconds and nanoseconds, as `struct timespec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Timespec {
    pub seconds: i64,
    pub nanos: i64,
}

/// Seconds and microseconds, as `struct timeval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Timeval {
    pub seconds: i64,
    pub micros: i64,
}

/// The bit of a clock number; 0 for those that only the kernel knows.
#[inline(always)]
const fn bit(clock: i32) -> u32 {
    let known = if (clock as u32) < 32 { 1u32 << (clock as u32) } else { 0 };
    known & (MONOTONIC | WALL)
}

/// clock_gettime.
#[inline(always)]
pub fn now(data: &Data, clock: i32, tsc: impl Fn() -> u64) -> Option<Timespec> {
    let bit = bit(clock);
    if bit == 0 {
        return None;
    }
    let (monotonic, wall_offset) = data.clock.read(tsc)?;
    let offset = if bit & WALL != 0 { wall_offset } else { 0 };
    let nanos = monotonic.wrapping_add(offset);
    Some(Timespec { seconds: (nanos / SECOND) as i64, nanos: (nanos % SECOND) as i64 })
}

/// The form that gettimeofday tells.
#[inline(always)]
pub fn micros(Timespec { seconds, nanos }: Timespec) -> Timeval {
    Timeval { seconds, micros: (nanos as u64 / 1000) as i64 }
}

/// clock_getres.
#[inline(always)]
pub fn resolution(clock: i32) -> Option<Timespec> {
    match bit(clock) {
        0 => None,
        bit if bit & COARSE != 0 => Some(Timespec { seconds: 0, nanos: COARSE_RESOLUTION }),
        _ => Some(Timespec { seconds: 0, nanos: 1 }),
    }
}
