//! The scale: nanoseconds of the monotonic clock from the TSC, and how that changes.
//!
//! Owns the scale as it was at boot and as it is now. A change goes on from the time that it is: the clock never stands
//! back. Never asks a device.
//!
//! Locks: a sequence lock. Its writers exclude each other by the lock of `adjust`, with interrupts off; a reader waits for them,
//! in interrupts too, for a few loads and stores. Two places in turns would let the clock go back on two CPUs: who has read the old
//! place may read the counter much later.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::nanos::Nanos;
use crate::arch::stop;
use crate::base::{cpu, tsc};
use alea_ntp::Rate;
use alea_vdso::data::SHIFT;

/// Odd while a writer is at work.
static SEQUENCE: AtomicU32 = AtomicU32::new(0);
/// From `BASE` on, nanoseconds = `AT_BASE` + ((tsc - `BASE`) * `MULTIPLIER` >> `SHIFT`).
static BASE: AtomicU64 = AtomicU64::new(0);
static AT_BASE: AtomicU64 = AtomicU64::new(0);
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);
/// The way back: ticks = nanoseconds * `INVERSE` >> `INVERSE_SHIFT`.
static INVERSE: AtomicU64 = AtomicU64::new(0);
const INVERSE_SHIFT: u32 = 48;

/// The same as it was at boot, where the clock began with zero. Relaxed: written once, before interrupts and other CPUs.
static RAW_BASE: AtomicU64 = AtomicU64::new(0);
static RAW_MULTIPLIER: AtomicU64 = AtomicU64::new(0);
static FREQUENCY: AtomicU64 = AtomicU64::new(0);

/// What the image of the vDSO has to know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub base: u64,
    pub at_base: u64,
    pub multiplier: u64,
    pub is_raw: bool,
}

/// What `of` reads, all of it before or after any change.
#[inline]
fn read<T>(of: impl Fn() -> T) -> T {
    loop {
        // Acquire: pairs with the Release at the end of `run_at`.
        let sequence = SEQUENCE.load(Ordering::Acquire);
        let value = of();
        // Acquire: pairs with the fence in `run_at`.
        fence(Ordering::Acquire);
        let same = SEQUENCE.load(Ordering::Relaxed) == sequence && sequence & 1 == 0;
        // The writer may be a CPU that stands for good, and then some time will do.
        if same || stop::are_stopped() {
            return value;
        }
        cpu::relax();
    }
}

/// Nanoseconds since the first instruction of the kernel; zero before `init`.
#[inline]
pub fn since_boot_ns() -> u64 {
    // Relaxed, all: under the sequence.
    read(|| scaled(tsc::read(), &BASE, &MULTIPLIER).wrapping_add(AT_BASE.load(Ordering::Relaxed)))
}

/// The same without what adjtimex does to it: CLOCK_MONOTONIC_RAW.
pub fn raw_since_boot_ns() -> u64 {
    scaled(tsc::read(), &RAW_BASE, &RAW_MULTIPLIER)
}

/// A TSC slightly behind the base (another CPU's) must not wrap.
#[inline]
fn scaled(tsc: u64, base: &AtomicU64, multiplier: &AtomicU64) -> u64 {
    let ticks = tsc.saturating_sub(base.load(Ordering::Relaxed));
    ((u128::from(ticks) * u128::from(multiplier.load(Ordering::Relaxed))) >> SHIFT) as u64
}

/// The TSC value at a point of time if the speed stays what it is; far ones saturate.
pub(super) fn to_tsc(at: Nanos) -> u64 {
    read(|| {
        // Relaxed, all: under the sequence.
        let nanos = at.0.saturating_sub(AT_BASE.load(Ordering::Relaxed));
        let inverse = INVERSE.load(Ordering::Relaxed);
        let ticks = (u128::from(nanos) * u128::from(inverse)) >> INVERSE_SHIFT;
        // One more, because the inverse was rounded down: a timer never fires early.
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1);
        BASE.load(Ordering::Relaxed).saturating_add(ticks)
    })
}

/// The TSC's frequency.
pub fn tsc_hz() -> u64 {
    FREQUENCY.load(Ordering::Relaxed)
}

/// The scale as it is, for [`alea_vdso`]. Under the lock of `adjust`.
pub(super) fn shown() -> Shown {
    // Relaxed, all: writers are excluded.
    let multiplier = MULTIPLIER.load(Ordering::Relaxed);
    let [base, at_base] = [&BASE, &AT_BASE].map(|word| word.load(Ordering::Relaxed));
    let raw = [&RAW_BASE, &RAW_MULTIPLIER].map(|word| word.load(Ordering::Relaxed));
    Shown { base, at_base, multiplier, is_raw: at_base == 0 && [base, multiplier] == raw }
}

/// Begins the clock with zero at `base`.
pub(super) fn init(base: u64, hz: u64) {
    let multiplier = (u128::from(Nanos::PER_SECOND) << SHIFT) / u128::from(hz);
    // Relaxed, all: no reader yet that could need an order; the multiplier last, so that the clock stays zero until it is right.
    FREQUENCY.store(hz, Ordering::Relaxed);
    for word in [&BASE, &RAW_BASE] {
        word.store(base, Ordering::Relaxed);
    }
    INVERSE.store(inverse(multiplier as u64), Ordering::Relaxed);
    for word in [&RAW_MULTIPLIER, &MULTIPLIER] {
        word.store(multiplier as u64, Ordering::Relaxed);
    }
}

fn inverse(multiplier: u64) -> u64 {
    ((1u128 << (SHIFT + INVERSE_SHIFT)) / u128::from(multiplier.max(1))) as u64
}

/// The multiplier at this rate.
pub(super) fn multiplier_at(rate: Rate) -> u64 {
    let raw = u128::from(RAW_MULTIPLIER.load(Ordering::Relaxed));
    (raw * u128::from(rate.clock) / u128::from(rate.counter)) as u64
}

/// From now on the clock runs so fast. Under the lock of `adjust`, interrupts off.
pub(super) fn run_at(multiplier: u64) {
    // Relaxed: writers are excluded.
    let sequence = SEQUENCE.load(Ordering::Relaxed);
    SEQUENCE.store(sequence.wrapping_add(1), Ordering::Relaxed);
    // SeqCst: the count is odd for all CPUs before this one reads the counter, so that who still found it even has read the
    // counter earlier; and a Release fence for the stores that follow, which pairs with the fence in `read`.
    fence(Ordering::SeqCst);
    let now = tsc::read_ordered();
    let at_now = scaled(now, &BASE, &MULTIPLIER).wrapping_add(AT_BASE.load(Ordering::Relaxed));
    AT_BASE.store(at_now, Ordering::Relaxed);
    BASE.store(now, Ordering::Relaxed);
    MULTIPLIER.store(multiplier, Ordering::Relaxed);
    INVERSE.store(inverse(multiplier), Ordering::Relaxed);
    // Release: pairs with the first load in `read`.
    SEQUENCE.store(sequence.wrapping_add(2), Ordering::Release);
}
