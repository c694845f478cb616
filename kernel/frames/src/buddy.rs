//! [`Buddy`]: blocks of 2^order frames, split on demand and merged when freed.
//!
//! Invariants: every free frame lies in exactly one free block; a block of order `k` starts at a multiple of
//! 2^k; a block and its buddy are never both free; the list of order `k` links exactly the heads of the free
//! blocks of that order. The caller serialises all calls and always lends the same metadata.

use crate::FrameMeta;

/// The largest order: blocks of 2^16 frames, 256 MiB.
pub const MAX_ORDER: usize = 16;

/// No frame: ends a list.
const NONE: u32 = u32::MAX;

/// The free lists; the links are in the metadata.
#[derive(Debug)]
pub struct Buddy {
    heads: [u32; MAX_ORDER + 1],
    /// Bit `k` is set when the list of order `k` is not empty.
    nonempty: u32,
    free: u64,
}

impl Default for Buddy {
    fn default() -> Self {
        Self::new()
    }
}

impl Buddy {
    /// An allocator with no frames.
    pub const fn new() -> Self {
        Self { heads: [NONE; MAX_ORDER + 1], nonempty: 0, free: 0 }
    }

    /// How many frames are free.
    pub const fn free_frames(&self) -> u64 {
        self.free
    }

    /// Adds the frames `start..end`, which must not have been added before.
    pub fn add_range(&mut self, meta: &[FrameMeta], start: u32, end: u32) {
        self.free_run(meta, start, end.saturating_sub(start));
    }

    /// Takes a block of 2^`order` frames: its first frame.
    pub fn alloc(&mut self, meta: &[FrameMeta], order: usize) -> Option<u32> {
        if order > MAX_ORDER {
            return None;
        }
        let candidates = self.nonempty >> order << order;
        if candidates == 0 {
            return None;
        }
        let mut have = candidates.trailing_zeros() as usize;
        let head = self.heads[have];
        self.unlink(meta, head, have);
        while have > order {
            have -= 1;
            self.link(meta, head + (1 << have), have);
        }
        meta[head as usize].set_free(None);
        self.free -= 1 << order;
        Some(head)
    }

    /// Takes up to `out.len()` single frames: how many. Small blocks go first, so that big ones last.
    pub fn alloc_singles(&mut self, meta: &[FrameMeta], out: &mut [u32]) -> usize {
        let mut done = 0;
        while done < out.len() && self.nonempty != 0 {
            let smallest = self.nonempty.trailing_zeros() as usize;
            let fits = (out.len() - done).ilog2() as usize;
            let order = smallest.min(fits);
            let Some(first) = self.alloc(meta, order) else { break };
            // The lowest frame is handed out last: it is on top when `out` is a stack.
            for (slot, frame) in out[done..].iter_mut().zip((first..first + (1 << order)).rev()) {
                *slot = frame;
            }
            done += 1 << order;
        }
        done
    }

    /// Gives back a block of 2^`order` frames.
    ///
    /// # Panics
    /// In debug builds, when the block is free already.
    pub fn free(&mut self, meta: &[FrameMeta], frame: u32, order: usize) {
        debug_assert!(frame.is_multiple_of(1 << order), "block freed at an unaligned frame");
        debug_assert!(meta[frame as usize].free_order().is_none(), "frame {frame:#x} freed twice");
        self.free += 1 << order;
        let (mut frame, mut order) = (frame, order);
        while order < MAX_ORDER {
            let buddy = frame ^ (1 << order);
            if meta.get(buddy as usize).and_then(FrameMeta::free_order) != Some(order) {
                break;
            }
            self.unlink(meta, buddy, order);
            meta[buddy as usize].set_free(None);
            meta[frame as usize].set_free(None);
            frame &= buddy;
            order += 1;
        }
        self.link(meta, frame, order);
    }

    /// Gives back `count` frames from `start` on, whatever blocks they came from.
    pub fn free_run(&mut self, meta: &[FrameMeta], start: u32, count: u32) {
        let (mut at, end) = (start, start.saturating_add(count));
        while at < end {
            let aligned = if at == 0 { MAX_ORDER } else { at.trailing_zeros() as usize };
            let fits = (end - at).ilog2() as usize;
            let order = aligned.min(fits).min(MAX_ORDER);
            self.free(meta, at, order);
            at += 1 << order;
        }
    }

    /// Gives back single frames.
    pub fn free_singles(&mut self, meta: &[FrameMeta], frames: &[u32]) {
        for &frame in frames {
            self.free(meta, frame, 0);
        }
    }

    /// Checks every invariant, at a cost proportional to memory: for tests.
    ///
    /// # Panics
    /// When one does not hold.
    pub fn check(&self, meta: &[FrameMeta]) {
        let mut seen = 0;
        for order in 0..=MAX_ORDER {
            let (mut at, mut prev) = (self.heads[order], NONE);
            assert_eq!(at != NONE, self.nonempty >> order & 1 == 1);
            while at != NONE {
                assert_eq!(meta[at as usize].free_order(), Some(order));
                assert!(at.is_multiple_of(1 << order));
                let buddy = meta.get((at ^ (1 << order)) as usize);
                assert!(order == MAX_ORDER || buddy.and_then(FrameMeta::free_order) != Some(order));
                for inner in at + 1..at + (1 << order) {
                    assert!(meta[inner as usize].free_order().is_none());
                }
                let (next, back) = meta[at as usize].links();
                assert_eq!(back, prev);
                (prev, at) = (at, next);
                seen += 1 << order;
            }
        }
        assert_eq!(seen, self.free);
    }

    fn link(&mut self, meta: &[FrameMeta], frame: u32, order: usize) {
        let next = self.heads[order];
        meta[frame as usize].set_free(Some(order));
        meta[frame as usize].set_links(next, NONE);
        if next != NONE {
            let (after, _) = meta[next as usize].links();
            meta[next as usize].set_links(after, frame);
        }
        self.heads[order] = frame;
        self.nonempty |= 1 << order;
    }

    fn unlink(&mut self, meta: &[FrameMeta], frame: u32, order: usize) {
        let (next, prev) = meta[frame as usize].links();
        if prev == NONE {
            self.heads[order] = next;
            if next == NONE {
                self.nonempty &= !(1 << order);
            }
        } else {
            let (_, before) = meta[prev as usize].links();
            meta[prev as usize].set_links(next, before);
        }
        if next != NONE {
            let (after, _) = meta[next as usize].links();
            meta[next as usize].set_links(after, prev);
        }
    }
}
