//! [`setting!`](crate::setting): a number that root may change while the machine runs, below /proc/sys.
//!
//! Each is a static of the room that obeys it; `fs::procfs::sysctl` shows it as a file. A setting has a type of its own, with a
//! `get` of its own: if no code of the kernel reads the setting, rustc says that `get` is never used, and the build fails. A number
//! that steers what is not there is an `fs::procfs::Kept`, which says so.
//!
//! Owns nothing: each static is its room's. Never waits. Locks: none.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

macro_rules! of_width {
    ($setting:ident, $bounded:ident, $number:ty, $atomic:ty) => {
        /// What a file needs of a setting. The code that obeys it calls the `get` of its type.
        pub trait $setting: Sync {
            /// The value, to be shown.
            fn shown(&self) -> $number;
            /// False if it may not be this.
            fn set(&self, value: $number) -> bool;
        }

        /// A number and the range that it stays in.
        pub struct $bounded {
            value: $atomic,
            least: $number,
            most: $number,
        }

        impl $bounded {
            pub const fn new(value: $number, range: RangeInclusive<$number>) -> Self {
                Self { value: <$atomic>::new(value), least: *range.start(), most: *range.end() }
            }

            #[inline]
            pub fn load(&self) -> $number {
                // Relaxed: nothing is published through it.
                self.value.load(Ordering::Relaxed)
            }

            /// False if it may not be this.
            pub fn store(&self, value: $number) -> bool {
                let may_be = (self.least..=self.most).contains(&value);
                if may_be {
                    // Relaxed: as in `load`.
                    self.value.store(value, Ordering::Relaxed);
                }
                may_be
            }
        }
    };
}

of_width!(Setting, Bounded, i32, AtomicI32);
// What is an `unsigned long` on Linux.
of_width!(WideSetting, WideBounded, u64, AtomicU64);

/// Declares settings: `setting! { pub static NAME = value, least..=most; }`. Each is a static and, of the same name, its type. Those of
/// `setting! { wide: ... }` have 64 bits and no sign.
#[macro_export]
macro_rules! setting {
    (wide: $($all:tt)+) => {
        $crate::setting! { @of WideSetting, WideBounded, u64; $($all)+ }
    };
    (@of $trait:ident, $bounded:ident, $number:ty; $($(#[$doc:meta])* $vis:vis static $name:ident = $value:expr, $range:expr;)+) => {$(
        $(#[$doc])*
        $vis static $name: $name = $name { value: $crate::base::setting::$bounded::new($value, $range) };

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the static that is its only value")]
        $vis struct $name {
            value: $crate::base::setting::$bounded,
        }

        impl $name {
            #[inline]
            $vis fn get(&self) -> $number {
                self.value.load()
            }
        }

        impl $crate::base::setting::$trait for $name {
            fn shown(&self) -> $number {
                self.value.load()
            }
            fn set(&self, value: $number) -> bool {
                self.value.store(value)
            }
        }
    )+};
    ($($all:tt)+) => {
        $crate::setting! { @of Setting, Bounded, i32; $($all)+ }
    };
}
