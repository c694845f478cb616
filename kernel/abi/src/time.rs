//! Times as they cross the user boundary.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: u64 = 1_000_000_000;
/// The greatest time, 292 years: Linux counts nanoseconds in signed numbers.
pub const NANOS_MAX: u64 = i64::MAX as u64;
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

    /// Nanoseconds; `None` if negative or not normalised (`EINVAL`). As on Linux, what does not fit into a signed number, and the
    /// last second that would not fit as a whole, is the greatest one.
    pub const fn to_nanos(self) -> Option<u64> {
        if self.sec < 0 || self.nsec < 0 || self.nsec >= NSEC_PER_SEC as i64 {
            return None;
        }
        if self.sec as u64 >= NANOS_MAX / NSEC_PER_SEC {
            return Some(NANOS_MAX);
        }
        Some(self.sec as u64 * NSEC_PER_SEC + self.nsec as u64)
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

/// `struct timex` of adjtimex(2). The time is in seconds and micro- or nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Timex {
    pub modes: u32,
    pub pad1: u32,
    pub offset: i64,
    pub freq: i64,
    pub maxerror: i64,
    pub esterror: i64,
    pub status: i32,
    pub pad2: u32,
    pub constant: i64,
    pub precision: i64,
    pub tolerance: i64,
    pub time: [i64; 2],
    pub tick: i64,
    /// What is told of a pulse a second: `ppsfreq` to `stbcnt`.
    pub pulse: Pulse,
    pub tai: i32,
    pub pad3: [u32; 11],
}

/// The part of `struct timex` about a pulse a second.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Pulse {
    pub freq: i64,
    pub jitter: i64,
    pub shift: i32,
    pub pad: u32,
    pub stabil: i64,
    /// `jitcnt`, `calcnt`, `errcnt`, `stbcnt`.
    pub counts: [i64; 4],
}

const _: () = assert!(size_of::<Timex>() == 208);

/// Bits and values of `linux/timex.h`.
pub mod timex {
    pub const ADJ_OFFSET: u32 = 0x0001;
    pub const ADJ_FREQUENCY: u32 = 0x0002;
    pub const ADJ_MAXERROR: u32 = 0x0004;
    pub const ADJ_ESTERROR: u32 = 0x0008;
    pub const ADJ_STATUS: u32 = 0x0010;
    pub const ADJ_TIMECONST: u32 = 0x0020;
    pub const ADJ_TAI: u32 = 0x0080;
    pub const ADJ_SETOFFSET: u32 = 0x0100;
    pub const ADJ_MICRO: u32 = 0x1000;
    pub const ADJ_NANO: u32 = 0x2000;
    pub const ADJ_TICK: u32 = 0x4000;
    /// The kernel's own names of what adjtime(3) says: that it is adjtime, its one bit, and that nothing is to change.
    pub const ADJ_ADJTIME: u32 = 0x8000;
    pub const ADJ_OFFSET_SINGLESHOT: u32 = 0x0001;
    pub const ADJ_OFFSET_READONLY: u32 = 0x2000;

    pub const STA_PLL: i32 = 0x0001;
    pub const STA_FLL: i32 = 0x0008;
    pub const STA_INS: i32 = 0x0010;
    pub const STA_DEL: i32 = 0x0020;
    pub const STA_UNSYNC: i32 = 0x0040;
    pub const STA_FREQHOLD: i32 = 0x0080;
    pub const STA_CLOCKERR: i32 = 0x1000;
    pub const STA_NANO: i32 = 0x2000;
    pub const STA_MODE: i32 = 0x4000;
    /// What only the kernel sets: `STA_PPSSIGNAL`, `PPSJITTER`, `PPSWANDER`, `PPSERROR`, `CLOCKERR`, `NANO`, `MODE`, `CLK`.
    pub const STA_RONLY: i32 = 0xff00;

    pub const TIME_OK: i32 = 0;
    pub const TIME_INS: i32 = 1;
    pub const TIME_DEL: i32 = 2;
    pub const TIME_OOP: i32 = 3;
    pub const TIME_WAIT: i32 = 4;
    pub const TIME_ERROR: i32 = 5;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_and_saturate() {
        assert_eq!(Timespec { sec: 1, nsec: 5 }.to_nanos(), Some(1_000_000_005));
        assert_eq!(Timespec { sec: 0, nsec: 1_000_000_000 }.to_nanos(), None);
        assert_eq!(Timespec { sec: -1, nsec: 0 }.to_nanos(), None);
        assert_eq!(Timespec { sec: i64::MAX, nsec: 0 }.to_nanos(), Some(NANOS_MAX));
        assert_eq!(Timespec { sec: 9_223_372_036, nsec: 0 }.to_nanos(), Some(NANOS_MAX));
        let last = Timespec { sec: 9_223_372_035, nsec: 999_999_999 };
        assert_eq!(last.to_nanos(), Some(9_223_372_035_999_999_999));
        assert_eq!(Timeval { sec: 0, usec: 7 }.to_nanos(), Some(7000));
        assert_eq!(Timespec::from_nanos(2_000_000_003), Timespec { sec: 2, nsec: 3 });
    }
}
