//! What a call of adjtimex asks for: what is refused, and what it changes.
//!
//! Owns the order of the checks and of the changes, which are Linux's. Never moves the clock itself: the caller steps it between
//! [`check`] and [`Discipline::apply`]. No locks.

use abi::time::{Timex, timex};
use abi::{Errno, Result};

use crate::discipline::{
    Discipline, Leap, MAX_ERROR, MAX_FREQUENCY, MAX_PHASE, NANOS, PLL_SHIFT, SCALE, STEPS,
    toward_zero,
};

/// A frequency in parts of a million with 16 binary places, which is what programs tell, times this is one that is scaled.
const FREQUENCY_UNIT: i64 = 1000 << (SCALE - 16);
/// The way back, by a multiplication: Linux's, which rounds as its does.
const UNIT_SHIFT: u32 = 19;
const UNIT_INVERSE: i64 = (1 << (UNIT_SHIFT + SCALE)) / FREQUENCY_UNIT + 1;
/// Ticks that are refused are outside of these, in microseconds.
const TICKS: core::ops::RangeInclusive<i64> = 9_000..=11_000;
const MAX_CONSTANT: i64 = 10;
const MAX_TAI: i64 = 100_000;
/// Seconds between two errors of phase from which the frequency-locked loop may be used, and is.
const FLL_SECONDS: (i64, i64) = (256, 2048);
const FLL_SHIFT: u32 = 2;

/// Whether the caller may set the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Granted,
    Denied,
}

/// Refuses what nobody may ask for (`EINVAL`) and what the caller may not (`EPERM`); by how many nanoseconds the wall clock is
/// to be stepped first, if it is.
pub fn check(request: &Timex, permission: Permission) -> Result<Option<i128>> {
    let asks = |mode| request.modes & mode != 0;
    let allowed = || match permission {
        Permission::Granted => Ok(()),
        Permission::Denied => Err(Errno::EPERM),
    };
    if asks(timex::ADJ_ADJTIME) {
        if !asks(timex::ADJ_OFFSET_SINGLESHOT) {
            return Err(Errno::EINVAL);
        }
        if !asks(timex::ADJ_OFFSET_READONLY) {
            allowed()?;
        }
    } else {
        if request.modes != 0 {
            allowed()?;
        }
        if asks(timex::ADJ_TICK) && !TICKS.contains(&request.tick) {
            return Err(Errno::EINVAL);
        }
    }
    let mut step = None;
    if asks(timex::ADJ_SETOFFSET) {
        allowed()?;
        let (limit, unit) = if asks(timex::ADJ_NANO) { (NANOS, 1) } else { (NANOS / 1000, 1000) };
        let [seconds, part] = request.time;
        if !(0..limit).contains(&part) {
            return Err(Errno::EINVAL);
        }
        step = Some(i128::from(seconds) * i128::from(NANOS) + i128::from(part * unit));
    }
    if asks(timex::ADJ_FREQUENCY) && request.freq.checked_mul(FREQUENCY_UNIT).is_none() {
        return Err(Errno::EINVAL);
    }
    Ok(step)
}

impl Discipline {
    /// Does what a checked request asks for, in the second of the wall clock that it is, and tells how things stand, except for the
    /// time; the value of the call.
    pub fn apply(&mut self, request: &mut Timex, now: i64) -> i32 {
        if request.modes & timex::ADJ_ADJTIME != 0 {
            let left = self.slew;
            if request.modes & timex::ADJ_OFFSET_READONLY == 0 {
                self.slew = request.offset;
            }
            request.offset = left;
        } else {
            let before = self.base_step();
            self.change(request, now);
            self.change_base(before);
            request.offset = toward_zero(self.offset * STEPS, SCALE);
            if self.status & timex::STA_NANO == 0 {
                // As Linux does it: what is negative comes out as a large number.
                request.offset = i64::from(request.offset as u32 / 1000);
            }
        }
        self.tell(request);
        match self.leap {
            _ if self.status & (timex::STA_UNSYNC | timex::STA_CLOCKERR) != 0 => timex::TIME_ERROR,
            Leap::None => timex::TIME_OK,
            Leap::Insert => timex::TIME_INS,
            Leap::Delete => timex::TIME_DEL,
            Leap::Now => timex::TIME_OOP,
            Leap::Done => timex::TIME_WAIT,
        }
    }

    /// Whether programs are told the time in nanoseconds.
    pub fn tells_nanos(&self) -> bool {
        self.status & timex::STA_NANO != 0
    }

    fn change(&mut self, request: &Timex, now: i64) {
        let asks = |mode| request.modes & mode != 0;
        if asks(timex::ADJ_STATUS) {
            self.change_status(request.status, now);
        }
        if asks(timex::ADJ_NANO) {
            self.status |= timex::STA_NANO;
        }
        if asks(timex::ADJ_MICRO) {
            self.status &= !timex::STA_NANO;
        }
        if asks(timex::ADJ_FREQUENCY) {
            self.set_frequency(request.freq * FREQUENCY_UNIT);
        }
        if asks(timex::ADJ_MAXERROR) {
            self.max_error = request.maxerror.clamp(0, MAX_ERROR);
        }
        if asks(timex::ADJ_ESTERROR) {
            self.estimated_error = request.esterror.clamp(0, MAX_ERROR);
        }
        if asks(timex::ADJ_TIMECONST) {
            let coarser = if self.tells_nanos() { 0 } else { 4 };
            self.constant = (request.constant.clamp(0, MAX_CONSTANT) + coarser).min(MAX_CONSTANT);
        }
        if asks(timex::ADJ_TAI) && (0..=MAX_TAI).contains(&request.constant) {
            self.tai = request.constant as i32;
        }
        if asks(timex::ADJ_OFFSET) {
            self.change_offset(request.offset, now);
        }
        if asks(timex::ADJ_TICK) {
            self.tick = request.tick;
        }
    }

    fn change_status(&mut self, status: i32, now: i64) {
        let pll = |status: i32| status & timex::STA_PLL != 0;
        if pll(self.status) && !pll(status) {
            self.no_leap();
            self.status = timex::STA_UNSYNC;
        }
        if !pll(self.status) && pll(status) {
            self.told = now;
        }
        self.status = self.status & timex::STA_RONLY | status & !timex::STA_RONLY;
    }

    fn set_frequency(&mut self, frequency: i64) {
        self.frequency = frequency.clamp(-MAX_FREQUENCY << SCALE, MAX_FREQUENCY << SCALE);
    }

    /// The clock is that far from the true time: the phase-locked loop is told, or at long intervals the frequency-locked.
    fn change_offset(&mut self, offset: i64, now: i64) {
        if self.status & timex::STA_PLL == 0 {
            return;
        }
        let nanos = match self.tells_nanos() {
            true => offset,
            false => offset.clamp(-1_000_000, 1_000_000) * 1000,
        };
        let nanos = nanos.clamp(-MAX_PHASE, MAX_PHASE);
        let held = self.status & timex::STA_FREQHOLD != 0;
        let seconds = if held { 0 } else { now - self.told };
        self.told = now;
        let locked = self.lock_frequency(nanos, seconds);
        // The loop's interval ends somewhere, so that a clock that is seldom told does not swing.
        let interval = seconds.min(1 << (PLL_SHIFT + 1 + self.constant as u32));
        let weight = SCALE - 2 * (PLL_SHIFT + 2 + self.constant as u32);
        let phase = nanos.wrapping_mul(interval) << weight;
        self.set_frequency(locked.wrapping_add(phase).wrapping_add(self.frequency));
        self.offset = (nanos << SCALE) / STEPS;
    }

    /// What the frequency-locked loop adds to the frequency.
    fn lock_frequency(&mut self, nanos: i64, seconds: i64) -> i64 {
        let (least, most) = FLL_SECONDS;
        self.status &= !timex::STA_MODE;
        let wanted = self.status & timex::STA_FLL != 0;
        if seconds < least || (!wanted && seconds <= most) {
            return 0;
        }
        self.status |= timex::STA_MODE;
        (nanos << (SCALE - FLL_SHIFT)) / seconds
    }

    fn tell(&self, request: &mut Timex) {
        let scaled = (self.frequency >> UNIT_SHIFT) * UNIT_INVERSE;
        request.freq = toward_zero(scaled, SCALE);
        request.maxerror = self.max_error;
        request.esterror = self.estimated_error;
        request.status = self.status;
        request.constant = self.constant;
        request.precision = 1;
        request.tolerance = (MAX_FREQUENCY << SCALE) / FREQUENCY_UNIT;
        request.tick = self.tick;
        request.tai = self.tai;
        // There is no signal of a pulse a second.
        request.pulse = Default::default();
    }
}
