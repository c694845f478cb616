//! When the generator gets a new key.
//!
//! Owns the schedule, as a function of uptime. It knows no clock: the caller says how late it is.
//! Lock rules: none.
//!
//! Linux's schedule: soon after boot, when the pool is still poor, often; later every minute.

use core::fmt;
use core::time::Duration;

/// The shortest time between two scheduled reseeds.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// The longest time between two scheduled reseeds.
pub const LONGEST: Duration = Duration::from_secs(60);

/// How long to wait after a reseed at this `uptime` until the next.
///
/// ```
/// use alea_random::reseed::interval;
/// use core::time::Duration;
/// assert_eq!(interval(Duration::ZERO), Duration::from_secs(1));
/// assert_eq!(interval(Duration::from_secs(30)), Duration::from_secs(15));
/// assert_eq!(interval(Duration::from_secs(86_400)), Duration::from_secs(60));
/// ```
pub const fn interval(uptime: Duration) -> Duration {
    let half = uptime.as_secs() / 2;
    if half >= LONGEST.as_secs() {
        LONGEST
    } else if half <= SHORTEST.as_secs() {
        SHORTEST
    } else {
        Duration::from_secs(half)
    }
}

/// What a reseed was for: counted one by one, because an unexpected cause is worth seeing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    /// The credit reached [`State::Ready`](crate::credit::State::Ready).
    Ready,
    /// The schedule.
    Schedule,
    /// `RNDRESEEDCRNG`.
    Request,
    /// A strong source delivered for the first time.
    NewSource,
    /// The virtual machine was cloned or restored.
    Clone,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Ready, Self::Schedule, Self::Request, Self::NewSource, Self::Clone];
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Schedule => "schedule",
            Self::Request => "request",
            Self::NewSource => "new_source",
            Self::Clone => "clone",
        })
    }
}
