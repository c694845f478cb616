//! When large pages are wanted, as the machine says, and what has become of them.
//!
//! Owns that word, and the counts that /proc/vmstat shows. Never makes a large page: `fault` does. Locks: none.

use super::table::behind;
use crate::sync::WaitQueue;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// For which mappings large pages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wanted {
    Never = 0,
    /// For those that asked for them by MADV_HUGEPAGE.
    Madvise = 1,
    /// For all that did not ask for the contrary.
    Always = 2,
}

/// Machines with less memory want none unless told, as on Linux.
const LEAST_MEMORY: u64 = 512 << 20;

/// Wakes khugepaged when a setting is another.
pub static CHANGED: WaitQueue = WaitQueue::new();
/// A [`Wanted`]. Relaxed: a setting.
static WANTED: AtomicU8 = AtomicU8::new(Wanted::Never as u8);
/// Large pages that faults made, and faults that found no memory for one. Relaxed: statistics.
static MADE: AtomicU64 = AtomicU64::new(0);
static FELL_BACK: AtomicU64 = AtomicU64::new(0);

/// What is wanted now.
#[inline]
pub fn wanted() -> Wanted {
    match WANTED.load(Ordering::Relaxed) {
        0 => Wanted::Never,
        1 => Wanted::Madvise,
        _ => Wanted::Always,
    }
}

/// Says what is wanted.
pub fn set_wanted(wanted: Wanted) {
    WANTED.store(wanted as u8, Ordering::Relaxed);
    CHANGED.wake_all();
}

/// What is wanted if nothing is said, of a machine with so many frames.
pub fn wanted_by_default(frames: u64) -> Wanted {
    let is_small = frames * (crate::base::PAGE_SIZE as u64) < LEAST_MEMORY;
    if is_small { Wanted::Never } else { Wanted::Always }
}

/// What has become of large pages since boot.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// How many are mapped now.
    pub mapped: u64,
    /// Those that faults made.
    pub made: u64,
    /// Faults that found no memory for one.
    pub fell_back: u64,
    /// Those that were opened, because a part of them was to change.
    pub opened: u64,
}

/// What has become of large pages since boot.
pub fn stats() -> Stats {
    let (made, fell_back) = (MADE.load(Ordering::Relaxed), FELL_BACK.load(Ordering::Relaxed));
    Stats { mapped: behind::mapped(), made, fell_back, opened: behind::opened() }
}

/// Counts a fault that made a large page, or found no memory for one.
pub(super) fn count_fault(made: bool) {
    let count = if made { &MADE } else { &FELL_BACK };
    count.fetch_add(1, Ordering::Relaxed);
}
