//! The state, and what a second does to it.
//!
//! Owns all numbers of the discipline. Numbers that are "scaled" have 32 binary places. Never looks at a request: see
//! [`request`](crate::request). No locks.

use abi::time::{USER_HZ, timex};

/// Binary places of scaled numbers: `NTP_SCALE_SHIFT`.
pub(crate) const SCALE: u32 = 32;
/// Steps in which Linux's clock is corrected within a second: Debian's `CONFIG_HZ`, and the unit of what programs read.
pub(crate) const STEPS: i64 = 250;
pub(crate) const NANOS: i64 = 1_000_000_000;
/// The weight of a phase error in the loop: `SHIFT_PLL`.
pub(crate) const PLL_SHIFT: u32 = 2;
/// The most that the frequency may be wrong, in nanoseconds in a second.
pub(crate) const MAX_FREQUENCY: i64 = 500_000;
/// The most that the phase may be wrong, in nanoseconds.
pub(crate) const MAX_PHASE: i64 = 500_000_000;
/// The largest errors told of, in microseconds: `NTP_PHASE_LIMIT`. Beyond it the clock counts as not synchronised.
pub(crate) const MAX_ERROR: i64 = (MAX_PHASE / 1000) << 5;
/// How far adjtime moves the clock in a second, in microseconds: `MAX_TICKADJ`.
const MOST_SLEW: i64 = 500;
/// A second of the wall clock that never comes.
const NEVER: i64 = i64::MAX;
const DAY: i64 = 86_400;

/// How fast the clock is to run: nanoseconds of it for nanoseconds of its counter, scaled by any common factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub clock: u64,
    pub counter: u64,
}

/// What adjtimex returns: where a leap second is, as `TIME_OK` to `TIME_WAIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    None,
    /// One will be inserted when the day ends.
    Insert,
    /// One will be left out.
    Delete,
    /// It is the inserted one.
    Now,
    /// It was; the request for it still stands.
    Done,
}

/// The discipline of one clock.
#[derive(Clone, Debug)]
pub struct Discipline {
    /// `STA_*`.
    pub(crate) status: i32,
    /// The time constant of the loops.
    pub(crate) constant: i64,
    /// Microseconds of the clock in a hundredth of a second: the coarsest knob of all.
    pub(crate) tick: i64,
    /// Correction in nanoseconds in a second, scaled.
    pub(crate) frequency: i64,
    /// What is left of the phase to correct, in nanoseconds for each of [`STEPS`], scaled.
    pub(crate) offset: i64,
    /// The second in which the phase was told last.
    pub(crate) told: i64,
    /// What is left for adjtime, in microseconds.
    pub(crate) slew: i64,
    pub(crate) max_error: i64,
    pub(crate) estimated_error: i64,
    /// International Atomic Time minus UTC, in seconds.
    pub(crate) tai: i32,
    pub(crate) leap: Leap,
    /// The second of the wall clock at which the leap is made.
    leap_at: i64,
    /// Nanoseconds in one of [`STEPS`], scaled, during this second.
    step: i64,
    /// The second of the wall clock that this is.
    second: i64,
}

impl Default for Discipline {
    fn default() -> Self {
        Self::new()
    }
}

impl Discipline {
    /// Of a clock that nobody has compared with the true time.
    pub const fn new() -> Self {
        let mut new = Self {
            status: timex::STA_UNSYNC,
            constant: 2,
            tick: 1_000_000 / USER_HZ as i64,
            frequency: 0,
            offset: 0,
            told: 0,
            slew: 0,
            max_error: MAX_ERROR,
            estimated_error: MAX_ERROR,
            tai: 0,
            leap: Leap::None,
            leap_at: NEVER,
            step: 0,
            second: 0,
        };
        new.step = new.base_step();
        new
    }

    /// How fast the clock runs during this second.
    pub fn rate(&self) -> Rate {
        Rate { clock: self.step as u64, counter: ((NANOS / STEPS) as u64) << SCALE }
    }

    /// International Atomic Time minus UTC, in seconds.
    pub fn tai(&self) -> i32 {
        self.tai
    }

    /// Whether the next second may change the rate or the time: then [`pass`](Self::pass) is to be called as it begins.
    pub fn is_busy(&self) -> bool {
        let leaps = self.leap != Leap::None || self.status & (timex::STA_INS | timex::STA_DEL) != 0;
        leaps || self.slew != 0 || self.chunk() != 0 || self.step != self.base_step()
    }

    /// The wall clock was set, and it is this second now: what was being corrected was another clock's error.
    pub fn clock_was_set(&mut self, second: i64) {
        self.slew = 0;
        self.status |= timex::STA_UNSYNC;
        self.max_error = MAX_ERROR;
        self.estimated_error = MAX_ERROR;
        self.offset = 0;
        self.leap_at = NEVER;
        self.step = self.base_step();
        self.second = second;
    }

    /// The wall clock has come to this second; how many seconds it is to be moved by, for a leap second.
    #[must_use]
    pub fn pass(&mut self, until: i64) -> i64 {
        let mut moved = 0;
        while self.second < until + moved {
            if !self.is_busy() {
                let seconds = until + moved - self.second;
                self.second += seconds;
                self.grow_error(seconds);
                break;
            }
            self.second += 1;
            let leap = self.next_leap();
            self.second += leap;
            self.tai -= leap as i32;
            moved += leap;
            self.grow_error(1);
            self.step = self.base_step() + self.next_chunk() + self.next_slew();
        }
        moved
    }

    /// What a step takes without any error of phase.
    pub(crate) const fn base_step(&self) -> i64 {
        let second = ((self.tick * 1000 * USER_HZ as i64) << SCALE) + self.frequency;
        second / STEPS
    }

    /// The tick or the frequency has changed by now: so does this second's step.
    pub(crate) fn change_base(&mut self, before: i64) {
        self.step += self.base_step() - before;
    }

    /// The leap state in a new second; how many seconds the wall clock leaps.
    fn next_leap(&mut self) -> i64 {
        let asked = |bit| self.status & bit != 0;
        match self.leap {
            Leap::None if asked(timex::STA_INS) => {
                self.leap = Leap::Insert;
                self.leap_at = self.second + DAY - self.second % DAY;
            }
            Leap::None if asked(timex::STA_DEL) => {
                self.leap = Leap::Delete;
                self.leap_at = self.second + DAY - (self.second + 1) % DAY;
            }
            Leap::Insert if !asked(timex::STA_INS) => self.no_leap(),
            Leap::Insert if self.second == self.leap_at => {
                self.leap = Leap::Now;
                return -1;
            }
            Leap::Delete if !asked(timex::STA_DEL) => self.no_leap(),
            Leap::Delete if self.second == self.leap_at => {
                self.leap = Leap::Done;
                self.leap_at = NEVER;
                return 1;
            }
            Leap::Now => {
                self.leap = Leap::Done;
                self.leap_at = NEVER;
            }
            Leap::Done if !asked(timex::STA_INS | timex::STA_DEL) => self.leap = Leap::None,
            Leap::None | Leap::Insert | Leap::Delete | Leap::Done => {}
        }
        0
    }

    /// Whatever leap there was going to be is not made.
    pub(crate) fn no_leap(&mut self) {
        self.leap = Leap::None;
        self.leap_at = NEVER;
    }

    fn grow_error(&mut self, seconds: i64) {
        let grown = seconds.saturating_mul(MAX_FREQUENCY / 1000).saturating_add(self.max_error);
        if grown > MAX_ERROR {
            self.status |= timex::STA_UNSYNC;
        }
        self.max_error = grown.min(MAX_ERROR);
    }

    /// What of the phase is corrected in one second.
    fn chunk(&self) -> i64 {
        toward_zero(self.offset, PLL_SHIFT + self.constant as u32)
    }

    fn next_chunk(&mut self) -> i64 {
        let chunk = self.chunk();
        self.offset -= chunk;
        chunk
    }

    /// What adjtime adds to a step in one second, scaled.
    fn next_slew(&mut self) -> i64 {
        let now = self.slew.clamp(-MOST_SLEW, MOST_SLEW);
        self.slew -= now;
        (now * 1000 / STEPS) << SCALE
    }
}

/// Divides by a power of two, and rounds toward zero.
pub(crate) fn toward_zero(value: i64, shift: u32) -> i64 {
    if value < 0 { -(-value >> shift) } else { value >> shift }
}
