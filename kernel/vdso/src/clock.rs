//! The clocks: which of them follow from the page of data, and in which form they are told.
//!
//! Pure: the caller brings the page and the counter, and makes the system call for what is `None` here.
//! No locks of its own.

use crate::data::{CLOCKS, Data};

/// CLOCK_REALTIME.
pub const REALTIME: i32 = 0;

const SECOND: u64 = 1_000_000_000;

/// Clock numbers that run with the monotonic clock: MONOTONIC, MONOTONIC_COARSE, BOOTTIME.
const MONOTONIC: u32 = 1 << 1 | 1 << 6 | 1 << 7;
/// MONOTONIC_RAW.
const RAW: usize = 4;
/// Clock numbers that run with the wall clock: REALTIME, REALTIME_COARSE.
const WALL: u32 = 1 << 0 | 1 << 5;
/// TAI.
const TAI: usize = 11;
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

/// Which clock a clock number runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Monotonic,
    /// The monotonic clock without what adjtimex does to it.
    Raw,
    Wall,
    /// International Atomic Time.
    Tai,
}

/// `None` for the numbers that only the kernel knows.
pub const fn kind(clock: usize) -> Option<Kind> {
    match clock {
        RAW => Some(Kind::Raw),
        TAI => Some(Kind::Tai),
        0..CLOCKS if MONOTONIC >> clock & 1 != 0 => Some(Kind::Monotonic),
        0..CLOCKS if WALL >> clock & 1 != 0 => Some(Kind::Wall),
        _ => None,
    }
}

/// A clock number as an index; those that are none lie beyond all clocks.
#[inline(always)]
const fn index(clock: i32) -> usize {
    clock as u32 as usize
}

/// clock_gettime, the short way: gives nothing where [`now`] has to be asked.
#[inline(always)]
pub fn try_now(data: &Data, clock: i32, tsc: impl Fn() -> u64) -> Option<Timespec> {
    data.clock.try_read(index(clock), tsc).map(timespec)
}

/// clock_gettime.
#[inline(always)]
pub fn now(data: &Data, clock: i32, tsc: impl Fn() -> u64) -> Option<Timespec> {
    data.clock.read(index(clock), tsc).map(timespec)
}

#[inline(always)]
fn timespec(nanos: u64) -> Timespec {
    Timespec { seconds: (nanos / SECOND) as i64, nanos: (nanos % SECOND) as i64 }
}

/// The form that gettimeofday tells.
#[inline(always)]
pub fn micros(Timespec { seconds, nanos }: Timespec) -> Timeval {
    Timeval { seconds, micros: (nanos as u64 / 1000) as i64 }
}

/// clock_getres.
#[inline(always)]
pub fn resolution(clock: i32) -> Option<Timespec> {
    kind(index(clock))?;
    let nanos = if COARSE >> clock & 1 != 0 { COARSE_RESOLUTION } else { 1 };
    Some(Timespec { seconds: 0, nanos })
}
