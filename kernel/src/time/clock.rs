//! Reading time: the TSC scaled to nanoseconds, and the wall clock as an offset to it.
//!
//! Owns the scale, written once by `init`, and the offset of the wall clock, which settimeofday may
//! change at any time. Never asks a device for the time after
//! `init`. Locks: none.

use core::sync::atomic::{AtomicU64, Ordering};

use super::nanos::Nanos;
use crate::arch::time::calibrate;
use crate::base::{cpu, tsc};
use crate::machine::rtc;
use crate::sync::Once;
use alea_vdso::data::{Clock, SHIFT, Scale};

/// nanoseconds = (tsc - `BASE`) * `MULTIPLIER` >> `SHIFT`.
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);
static BASE: AtomicU64 = AtomicU64::new(0);
static FREQUENCY: AtomicU64 = AtomicU64::new(0);
/// Wall clock minus monotonic clock.
static WALL_OFFSET: AtomicU64 = AtomicU64::new(0);
/// Where programs read the same.
static SHOWN: Once<&'static Clock> = Once::new();

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

    /// True for the clocks that settimeofday moves.
    pub fn is_wall(self) -> bool {
        matches!(self, Self::Realtime | Self::RealtimeCoarse | Self::Tai)
    }
}

/// Nanoseconds since the first instruction of the kernel; zero before `init`.
#[inline]
pub fn since_boot_ns() -> u64 {
    scale(tsc::read())
}

#[inline]
fn scale(tsc: u64) -> u64 {
    // Relaxed: all written once, before interrupts and other CPUs. A TSC slightly behind the base
    // (another CPU's) must not wrap.
    let ticks = tsc.saturating_sub(BASE.load(Ordering::Relaxed));
    ((u128::from(ticks) * u128::from(MULTIPLIER.load(Ordering::Relaxed))) >> SHIFT) as u64
}

/// The TSC value at a point of time; far ones saturate.
pub(super) fn to_tsc(at: Nanos) -> u64 {
    // Relaxed: as in `scale`.
    let hz = u128::from(FREQUENCY.load(Ordering::Relaxed));
    let ticks = (u128::from(at.0) * hz).div_ceil(u128::from(Nanos::PER_SECOND));
    u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(BASE.load(Ordering::Relaxed))
}

/// The time on a clock.
#[inline]
pub fn clock_now(clock: ClockId) -> Nanos {
    let monotonic = Nanos(since_boot_ns());
    if clock.is_wall() { monotonic + wall_offset() } else { monotonic }
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

/// Sets the wall clock to nanoseconds since 1970.
pub fn set_realtime(now: Nanos) {
    // Relaxed: as in `wall_offset`.
    WALL_OFFSET.store(now.0.saturating_sub(since_boot_ns()), Ordering::Relaxed);
    publish();
}

/// Keeps `clock` up to date from now on, for programs to read without a system call. Called once.
pub fn show_to_programs(clock: &'static Clock) {
    SHOWN.call_once(|| clock);
    publish();
}

fn publish() {
    let Some(shown) = SHOWN.get() else { return };
    // Relaxed: written once; the offset as in `wall_offset`.
    shown.publish(Some(Scale {
        base: BASE.load(Ordering::Relaxed),
        multiplier: MULTIPLIER.load(Ordering::Relaxed),
        wall_offset: WALL_OFFSET.load(Ordering::Relaxed),
    }));
}

/// What clock_getres says.
pub fn resolution(clock: ClockId) -> Nanos {
    match clock {
        ClockId::RealtimeCoarse | ClockId::MonotonicCoarse => Nanos(4_000_000),
        _ => Nanos(1),
    }
}

/// The TSC's frequency.
pub fn tsc_hz() -> u64 {
    // Relaxed: written once.
    FREQUENCY.load(Ordering::Relaxed)
}

/// Calibrates the TSC and reads the wall clock.
pub(super) fn init(entry_tsc: u64) {
    let found = calibrate::run();
    let multiplier = (u128::from(Nanos::PER_SECOND) << SHIFT) / u128::from(found.tsc_hz);
    // Relaxed: no reader yet that could need an order; the multiplier last, so that the clock stays
    // zero until it is right.
    FREQUENCY.store(found.tsc_hz, Ordering::Relaxed);
    BASE.store(entry_tsc, Ordering::Relaxed);
    MULTIPLIER.store(multiplier as u64, Ordering::Relaxed);
    if let Some(date) = rtc::read() {
        set_realtime(Nanos::from_secs(unix_seconds(&date)));
    }
    log::info!(
        "TSC {}.{:03} MHz by {}",
        found.tsc_hz / 1_000_000,
        found.tsc_hz / 1000 % 1000,
        found.source
    );
}

/// Seconds since 1970 of a date (UTC, proleptic Gregorian).
/// Seconds from 1970 to a date.
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
    let ticks = seconds.saturating_mul(tsc_hz().max(1_000_000_000));
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
