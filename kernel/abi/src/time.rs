//! Times as they cross the user boundary.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: u64 = 1_000_000_000;
/// `sysconf(_SC_CLK_TCK)`: the unit of times(2), /proc and `SIGCHLD`.
pub const USER_HZ: u64 = 100;

/// `struct timespec`: seconds and nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Timespec {
    pub sec: i64,
    pub nsec: i64,
}

impl Timespec {
    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { sec: (nanos / NSEC_PER_SEC) as i64, nsec: (nanos % NSEC_PER_SEC) as i64 }
    }

    /// Nanoseconds, saturating; `None` if negative or not normalised (`EINVAL`).
    pub const fn to_nanos(self) -> Option<u64> {
        if self.sec < 0 || self.nsec < 0 || self.nsec >= NSEC_PER_SEC as i64 {
            return None;
        }
        Some((self.sec as u64).saturating_mul(NSEC_PER_SEC).saturating_add(self.nsec as u64))
    }
}

/// `struct timeval`: seconds and microseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Timeval {
    pub sec: i64,
    pub usec: i64,
}

impl Timeval {
    /// From nanoseconds, rounding down.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { sec: (nanos / NSEC_PER_SEC) as i64, usec: (nanos % NSEC_PER_SEC / 1000) as i64 }
    }

    /// Nanoseconds, saturating; `None` if negative or not normalised (`EINVAL`).
    pub const fn to_nanos(self) -> Option<u64> {
        if self.sec < 0 || self.usec < 0 || self.usec >= 1_000_000 {
            return None;
        }
        Timespec { sec: self.sec, nsec: self.usec * 1000 }.to_nanos()
    }
}

/// `struct itimerspec`.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Itimerspec {
    pub interval: Timespec,
    pub value: Timespec,
}

/// `struct itimerval`.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Itimerval {
    pub interval: Timeval,
    pub value: Timeval,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_and_saturate() {
        assert_eq!(Timespec { sec: 1, nsec: 5 }.to_nanos(), Some(1_000_000_005));
        assert_eq!(Timespec { sec: 0, nsec: 1_000_000_000 }.to_nanos(), None);
        assert_eq!(Timespec { sec: -1, nsec: 0 }.to_nanos(), None);
        assert_eq!(Timespec { sec: i64::MAX, nsec: 0 }.to_nanos(), Some(u64::MAX));
        assert_eq!(Timeval { sec: 0, usec: 7 }.to_nanos(), Some(7000));
        assert_eq!(Timespec::from_nanos(2_000_000_003), Timespec { sec: 2, nsec: 3 });
    }
}
