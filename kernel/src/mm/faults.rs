//! Faults that `alea.crash=` commits: frames that are given back by who must not. The checking kernel notices.
//!
//! Owns nothing. Never called but at the end of boot, for a test. Locks: none of its own.

use super::frames::{self, For};
use alea_frames::Owner;

/// Gives a frame back twice.
pub fn free_twice() {
    if let Some(frame) = frames::alloc(Owner::Kernel, For::Kernel) {
        frames::free(frame);
        frames::free(frame);
    }
}

/// Gives a page table back as if it were data of one's own.
pub fn free_foreign() {
    if let Some(table) = frames::alloc_table() {
        frames::free(table);
    }
}
