//! `Nanos`: a span or a point of time in nanoseconds. Arithmetic saturates, as deadlines should.

use core::ops::{Add, Sub};

/// Nanoseconds, since boot when a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    pub const PER_SECOND: u64 = 1_000_000_000;

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(Self::PER_SECOND))
    }

    /// Whole seconds.
    pub const fn secs(self) -> u64 {
        self.0 / Self::PER_SECOND
    }

    /// Nanoseconds within the second.
    pub const fn subsec(self) -> u64 {
        self.0 % Self::PER_SECOND
    }

    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
