//! [`setting!`](crate::setting): a number that root may change while the machine runs, below /proc/sys.
//!
//! Each is a static of the room that obeys it; `fs::procfs::sysctl` shows it as a file. A setting has a type of its own, with a
//! `get` of its own: if no code of the kernel reads the setting, rustc says that `get` is never used, and the build fails. A number
//! that steers what is not there is an `fs::procfs::Kept`, which says so.
//!
//! Owns nothing: each static is its room's. Never waits. Locks: none.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicI32, Ordering};

/// What a file needs of a setting. The code that obeys it calls the `get` of its type.
pub trait Setting: Sync {
    /// The value, to be shown.
    fn shown(&self) -> i32;
    /// False if it may not be this.
    fn set(&self, value: i32) -> bool;
}

/// A number and the range that it stays in.
pub struct Bounded {
    value: AtomicI32,
    least: i32,
    most: i32,
}

impl Bounded {
    pub const fn new(value: i32, range: RangeInclusive<i32>) -> Self {
        Self { value: AtomicI32::new(value), least: *range.start(), most: *range.end() }
    }

    #[inline]
    pub fn load(&self) -> i32 {
        // Relaxed: nothing is published through it.
        self.value.load(Ordering::Relaxed)
    }

    /// False if it may not be this.
    pub fn store(&self, value: i32) -> bool {
        let may_be = (self.least..=self.most).contains(&value);
        if may_be {
            // Relaxed: as in `load`.
            self.value.store(value, Ordering::Relaxed);
        }
        may_be
    }
}

/// Declares settings: `setting! { pub static NAME = value, least..=most; }`. Each is a static and, of the same name, its type.
#[macro_export]
macro_rules! setting {
    ($($(#[$doc:meta])* $vis:vis static $name:ident = $value:expr, $range:expr;)+) => {$(
        $(#[$doc])*
        $vis static $name: $name = $name { value: $crate::base::setting::Bounded::new($value, $range) };

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the static that is its only value")]
        $vis struct $name {
            value: $crate::base::setting::Bounded,
        }

        impl $name {
            #[inline]
            $vis fn get(&self) -> i32 {
                self.value.load()
            }
        }

        impl $crate::base::setting::Setting for $name {
            fn shown(&self) -> i32 {
                self.value.load()
            }
            fn set(&self, value: i32) -> bool {
                self.value.store(value)
            }
        }
    )+};
}
