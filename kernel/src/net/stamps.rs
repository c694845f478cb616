//! [`Stamps`]: when messages came, as SO_TIMESTAMP, its other forms, and SIOCGSTAMP tell it.
//!
//! Owns one socket's wish and the time of the message that was read last. Never stands for a stream: its bytes have no times.
//! Locks: none; a transfer may go by a wish that is being changed, or by the one before, so all is Relaxed.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// SO_TIMESTAMP and its other forms.
pub const TIMESTAMP: i32 = 29;
pub const TIMESTAMPNS: i32 = 35;
pub const TIMESTAMP_NEW: i32 = 63;
pub const TIMESTAMPNS_NEW: i32 = 64;

/// Nothing was read yet.
const NEVER: u64 = u64::MAX;
/// Something was read when nobody wanted to know.
const UNKNOWN: u64 = 0;

/// Whether `option` is told to be on when `form` is. On Linux the finer of the new forms shows as both of them.
pub fn shows(form: Option<i32>, option: i32) -> bool {
    form == Some(option) || option == TIMESTAMP_NEW && form == Some(TIMESTAMPNS_NEW)
}

/// Of one socket.
pub struct Stamps {
    /// Which form is on: an option's number, or 0.
    form: AtomicI32,
    /// Somebody asked by an ioctl or an option: from then on the times are kept.
    wanted: AtomicBool,
    /// When the message came that was read last, in nanoseconds; or [`NEVER`], or [`UNKNOWN`].
    last: AtomicU64,
}

impl Stamps {
    pub const fn new() -> Self {
        Self {
            form: AtomicI32::new(0),
            wanted: AtomicBool::new(false),
            last: AtomicU64::new(NEVER),
        }
    }

    /// What an accepted connection takes over from its listener.
    pub fn inherit(&self, from: &Self) {
        self.form.store(from.form.load(Ordering::Relaxed), Ordering::Relaxed);
        self.wanted.store(from.wanted.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Sets a form; whichever was on is off.
    pub fn set(&self, form: i32, on: bool) {
        self.form.store(if on { form } else { 0 }, Ordering::Relaxed);
        if on {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// The form that is on.
    pub fn form(&self) -> Option<i32> {
        match self.form.load(Ordering::Relaxed) {
            0 => None,
            form => Some(form),
        }
    }

    /// A message was read that came then. Its time is kept for the ioctls unless a control message tells it.
    #[inline]
    pub fn note(&self, time: u64) {
        if self.form.load(Ordering::Relaxed) != 0 {
            return;
        }
        if self.wanted.load(Ordering::Relaxed) {
            self.last.store(time, Ordering::Relaxed);
        } else if self.last.load(Ordering::Relaxed) == NEVER {
            self.last.store(UNKNOWN, Ordering::Relaxed);
        }
    }

    /// What SIOCGSTAMP tells; of a message that was read before anybody wanted to know, that it came `now`. `None` before the first.
    pub fn last(&self, now: u64) -> Option<u64> {
        self.wanted.store(true, Ordering::Relaxed);
        match self.last.load(Ordering::Relaxed) {
            NEVER => None,
            UNKNOWN => {
                self.last.store(now, Ordering::Relaxed);
                Some(now)
            }
            time => Some(time),
        }
    }
}
