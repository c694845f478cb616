//! Blocks of 2 MiB for user memory: 512 frames in a row, each with a reference of its own, so that a block can be taken apart
//! without anything being counted anew.
//!
//! Owns nothing. Never takes what the reserve needs, and never has anybody killed: who gets no block takes single frames. Never
//! gives a block back whole while somebody else has a reference to a part of it. Locks: the buddy's.

use super::buddy::{RESERVE, buddy};
use super::frames::{count, put};
use super::inject::{self, Kind};
use super::pfn::{Pfn, metadata};
use super::wipe;
use crate::base::PAGE_SIZE;
use crate::base::page::LARGE_PAGE_SIZE;
use crate::sync::Pace;
use alea_frames::Owner;
use core::sync::atomic::Ordering;

/// Frames of a block.
pub const LARGE_PAGES: usize = LARGE_PAGE_SIZE / PAGE_SIZE;
const ORDER: usize = LARGE_PAGES.ilog2() as usize;

/// The frames of the block that begins with `first`.
fn frames_of(first: Pfn) -> impl Iterator<Item = Pfn> {
    (first.0..first.0 + LARGE_PAGES as u32).map(Pfn)
}

/// A block with undefined contents, for private user memory.
pub(in crate::mm) fn alloc_large() -> Option<Pfn> {
    if inject::fails(Kind::Frame) {
        return None;
    }
    let first = {
        let mut buddy = buddy();
        // Relaxed: set once at boot.
        let needed = RESERVE.load(Ordering::Relaxed) + 2 * LARGE_PAGES as u64;
        if buddy.free_frames() < needed { None } else { buddy.alloc(metadata(), ORDER) }
    };
    let first = Pfn(first?);
    for frame in frames_of(first) {
        debug_assert!(frame.meta().owner() == Owner::None, "a frame in use was in a free block");
        frame.meta().set_owner(Owner::Anon);
    }
    count(Owner::Anon, LARGE_PAGES as i64);
    Some(first)
}

/// Zeroes a block that nobody else has yet.
pub(in crate::mm) fn clear_large(first: Pfn) {
    for frame in frames_of(first).paced() {
        frame.clear();
    }
}

/// One reference less to each frame of a block.
pub(in crate::mm) fn put_large(first: Pfn) {
    let is_ours = |frame: Pfn| frame.meta().refs() == 1 && frame.meta().owner() == Owner::Anon;
    if !frames_of(first).all(is_ours) {
        return frames_of(first).paced().for_each(put);
    }
    for frame in frames_of(first).paced() {
        frame.meta().release();
        if wipe::on_free() {
            frame.clear();
        }
    }
    count(Owner::Anon, -(LARGE_PAGES as i64));
    buddy().free(metadata(), first.0, ORDER);
}
