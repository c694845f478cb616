//! [`Setting`]: a number that root may change while the machine runs, below /proc/sys.
//!
//! Each is a static of the room that obeys it; `fs::procfs` shows it as a file.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicI32, Ordering};

/// A number and the range that it stays in.
pub struct Setting {
    value: AtomicI32,
    least: i32,
    most: i32,
}

impl Setting {
    pub const fn new(value: i32, range: RangeInclusive<i32>) -> Self {
        Self { value: AtomicI32::new(value), least: *range.start(), most: *range.end() }
    }

    #[inline]
    pub fn get(&self) -> i32 {
        // Relaxed: nothing is published through it.
        self.value.load(Ordering::Relaxed)
    }

    /// False if it may not be this.
    pub fn set(&self, value: i32) -> bool {
        let may_be = (self.least..=self.most).contains(&value);
        if may_be {
            // Relaxed: as in `get`.
            self.value.store(value, Ordering::Relaxed);
        }
        may_be
    }
}
