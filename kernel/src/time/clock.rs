//! Reading time: the monotonic clock, and the others as offsets to it.
//!
//! Owns the offsets of the wall clock and of International Atomic Time, which `adjust` may change at any time. Never asks a
//! device for the time after `init`. Locks: none.

use core::sync::atomic::{AtomicU64, Ordering};

use super::nanos::Nanos;
use super::scale::{self, raw_since_boot_ns, since_boot_ns};
use crate::arch::time::calibrate;
use crate::base::{cpu, tsc};
use crate::machine::rtc;
use crate::sync::wait::{Base, Moment};

/// Wall clock minus monotonic clock, and International Atomic Time minus wall clock.
static WALL_OFFSET: AtomicU64 = AtomicU64::new(0);
static TAI_OFFSET: AtomicU64 = AtomicU64::new(0);

/// The clocks of clock_gettime that are the same for every task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockId {
    Realtime,
    Monotonic,
    MonotonicRaw,
    RealtimeCoarse,
    MonotonicCoarse,
    Boottime,
    Tai,
}

impl ClockId {
    /// The clock with this number in Linux's ABI.
    pub fn from_abi(id: i32) -> Option<Self> {
        Some(match id {
            0 | 8 => Self::Realtime, // 8: CLOCK_REALTIME_ALARM
            1 => Self::Monotonic,
            4 => Self::MonotonicRaw,
            5 => Self::RealtimeCoarse,
            6 => Self::MonotonicCoarse,
            7 | 9 => Self::Boottime, // 9: CLOCK_BOOTTIME_ALARM
            11 => Self::Tai,
            _ => return None,
        })
    }

    /// What a time to wait for is counted on. As on Linux, the wall clock's for a while is not of a clock that can be set.
    pub fn base(self, absolute: bool) -> Base {
        match self {
            Self::Tai => Base::Atomic,
            _ if absolute && self.is_wall() => Base::Wall,
            _ => Base::Monotonic,
        }
    }

    /// True for the clocks that settimeofday moves.
    pub fn is_wall(self) -> bool {
        matches!(self, Self::Realtime | Self::RealtimeCoarse | Self::Tai)
    }
}

/// The time on a clock.
#[inline]
pub fn clock_now(clock: ClockId) -> Nanos {
    match clock {
        ClockId::MonotonicRaw => Nanos(raw_since_boot_ns()),
        // Relaxed: as in `wall_offset`; negative ones wrap.
        ClockId::Tai => Nanos(realtime().0.wrapping_add(TAI_OFFSET.load(Ordering::Relaxed))),
        _ if clock.is_wall() => monotonic() + wall_offset(),
        _ => monotonic(),
    }
}

/// A time as Linux counts times: what was long before the machine began is negative, and what never comes is the last there is.
pub fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// The time on what moments are counted on.
#[inline]
pub fn now_on(base: Base) -> Nanos {
    match base {
        Base::Monotonic => monotonic(),
        Base::Wall => realtime(),
        Base::Atomic => clock_now(ClockId::Tai),
    }
}

/// When that is on the monotonic clock, as clocks are set now; the past is zero.
#[inline]
pub(super) fn monotonic_of(until: Moment) -> Nanos {
    match until.base {
        Base::Monotonic => Nanos(until.at),
        base => {
            let (there, here) = (now_on(base).0, monotonic().0);
            Nanos(here.saturating_add(until.at).saturating_sub(there))
        }
    }
}

/// What passes from one time to a later one.
pub fn passed(from: i64, to: i64) -> u64 {
    to.saturating_sub(from).max(0).unsigned_abs()
}

/// Nanoseconds since 1970.
#[inline]
pub fn realtime() -> Nanos {
    clock_now(ClockId::Realtime)
}

/// The wall clock minus the monotonic clock: a wall deadline minus this is a monotonic one.
#[inline]
pub fn wall_offset() -> Nanos {
    // Relaxed: one word; a reader sees the old or the new time.
    Nanos(WALL_OFFSET.load(Ordering::Relaxed))
}

pub(super) fn set_wall_offset(offset: Nanos) {
    // Relaxed: as in `wall_offset`.
    WALL_OFFSET.store(offset.0, Ordering::Relaxed);
}

/// Sets International Atomic Time minus the wall clock, in nanoseconds; a negative number wraps.
pub(super) fn set_tai_offset(offset: u64) {
    // Relaxed: as in `wall_offset`.
    TAI_OFFSET.store(offset, Ordering::Relaxed);
}

/// What clock_getres says.
pub fn resolution(clock: ClockId) -> Nanos {
    match clock {
        ClockId::RealtimeCoarse | ClockId::MonotonicCoarse => Nanos(4_000_000),
        _ => Nanos(1),
    }
}

/// Calibrates the TSC and reads the wall clock.
pub(super) fn init(entry_tsc: u64) {
    let found = calibrate::run();
    scale::init(entry_tsc, found.tsc_hz);
    if let Some(date) = rtc::read() {
        set_wall_offset(Nanos::from_secs(unix_seconds(&date)) - monotonic());
    }
    log::info!(
        "TSC {}.{:03} MHz by {}",
        found.tsc_hz / 1_000_000,
        found.tsc_hz / 1000 % 1000,
        found.source
    );
}

/// Seconds since 1970 of a date (UTC, proleptic Gregorian).
pub fn unix_seconds(date: &rtc::DateTime) -> u64 {
    // Years start in March, so that the leap day comes last.
    let (year, month) =
        if date.month > 2 { (date.year, date.month - 3) } else { (date.year - 1, date.month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = u64::from(year) * 365 + u64::from(leap_days + (month * 153 + 2) / 5 + date.day);
    // 719469 days lie between 0000-03-01 (day 1) and 1970-01-01.
    let days = days.saturating_sub(719_469);
    days * 86_400 + u64::from(date.hour * 3600 + date.minute * 60 + date.second)
}

/// Spins, for a panic's delay before a reboot.
pub fn busy_wait_seconds(seconds: u64) {
    let ticks = seconds.saturating_mul(scale::tsc_hz().max(1_000_000_000));
    let start = tsc::read();
    while tsc::read().wrapping_sub(start) < ticks {
        cpu::relax();
    }
}

/// Nanoseconds since boot as a `Nanos`.
#[inline]
pub fn monotonic() -> Nanos {
    Nanos(since_boot_ns())
}
