//! [`Tree`]: from page index to frame.
//!
//! Slots lie in chunks of 512, so that runs of pages are found and mapped by slices. The first chunk, all that
//! most files have, is part of the tree itself. A slot of 0 is a hole: frame 0 is never handed out.

use crate::mm::frames::{Pfn, kernel_memory_low};
use crate::sync::Pace;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

const CHUNK: u64 = 512;

/// From page index to frame; each slot that is not a hole owns a reference.
pub(super) struct Tree {
    first: Vec<u32>,
    rest: BTreeMap<u64, Vec<u32>>,
    resident: u64,
}

fn split(index: u64) -> (u64, usize) {
    (index / CHUNK, (index % CHUNK) as usize)
}

/// Whether a new chunk of slots may be made: the alloc crate would panic if it could not.
fn may_grow() -> bool {
    !kernel_memory_low()
}

impl Tree {
    pub const fn new() -> Self {
        Self { first: Vec::new(), rest: BTreeMap::new(), resident: 0 }
    }

    pub fn resident(&self) -> u64 {
        self.resident
    }

    pub fn is_empty(&self) -> bool {
        self.resident == 0
    }

    #[inline]
    fn chunk(&self, number: u64) -> &[u32] {
        if number == 0 { &self.first } else { self.rest.get(&number).map_or(&[], Vec::as_slice) }
    }

    #[inline]
    pub fn get(&self, index: u64) -> Option<Pfn> {
        let (number, slot) = split(index);
        match self.chunk(number).get(slot) {
            None | Some(0) => None,
            Some(&frame) => Some(Pfn(frame)),
        }
    }

    /// The slot's value, with room made for it; `None` when there is no memory.
    pub fn slot(&mut self, index: u64) -> Option<u32> {
        let (number, slot) = split(index);
        let chunk = if number == 0 {
            &mut self.first
        } else {
            if !self.rest.contains_key(&number) && !may_grow() {
                return None;
            }
            self.rest.entry(number).or_default()
        };
        if slot >= chunk.len() {
            if slot >= chunk.capacity() {
                let room = (slot + 1).next_power_of_two().max(4);
                chunk.try_reserve_exact(room - chunk.len()).ok()?;
            }
            chunk.resize(slot + 1, 0);
        }
        chunk.get(slot).copied()
    }

    /// Fills a slot that [`slot`](Self::slot) found to be a hole.
    pub fn set(&mut self, index: u64, frame: Pfn) {
        let (number, slot) = split(index);
        let chunk = if number == 0 { Some(&mut self.first) } else { self.rest.get_mut(&number) };
        if let Some(value) = chunk.and_then(|chunk| chunk.get_mut(slot)) {
            debug_assert!(*value == 0);
            *value = frame.0;
            self.resident += 1;
        }
    }

    /// Takes one page out.
    pub fn take_one(&mut self, index: u64) -> Option<Pfn> {
        let (number, slot) = split(index);
        let chunk = if number == 0 { Some(&mut self.first) } else { self.rest.get_mut(&number) };
        let frame = core::mem::take(chunk?.get_mut(slot)?);
        self.resident -= u64::from(frame != 0);
        (frame != 0).then_some(Pfn(frame))
    }

    #[inline]
    pub fn runs(&self, indices: Range<u64>, visit: &mut impl FnMut(u64, &[u32])) {
        let mut at = indices.start;
        while at < indices.end {
            let (number, slot) = split(at);
            let next = (number + 1).saturating_mul(CHUNK).min(indices.end);
            let chunk = self.chunk(number);
            let end = (slot + (next - at) as usize).min(chunk.len());
            if slot < end {
                visit(at, &chunk[slot..end]);
            }
            at = next;
        }
    }

    /// Takes the slots of `indices` out into a tree of their own.
    pub fn take(&mut self, indices: Range<u64>) -> Tree {
        let mut gone = Tree::new();
        if indices.is_empty() || self.is_empty() {
            return gone;
        }
        let (first_number, last_number) = (indices.start / CHUNK, (indices.end - 1) / CHUNK);
        if first_number == 0 {
            let end = if last_number == 0 { indices.end } else { CHUNK };
            gone.first = take_slots(&mut self.first, indices.start, end);
        }
        if !self.rest.is_empty() && last_number > 0 {
            let mut tail = self.rest.split_off(&first_number.max(1));
            if let Some(beyond) = last_number.checked_add(1) {
                self.rest.append(&mut tail.split_off(&beyond));
            }
            // Chunks at the ends may stay in part; both ends may lie in one.
            let last = Some(last_number).filter(|&last| last != first_number);
            for number in [Some(first_number), last].into_iter().flatten() {
                let (low, high) =
                    (number * CHUNK, number.saturating_mul(CHUNK).saturating_add(CHUNK));
                if number > 0
                    && (low < indices.start || high > indices.end)
                    && let Some(mut chunk) = tail.remove(&number)
                {
                    let taken = take_slots(
                        &mut chunk,
                        indices.start.max(low) - low,
                        indices.end.min(high) - low,
                    );
                    self.rest.insert(number, chunk);
                    tail.insert(number, taken);
                }
            }
            gone.rest = tail;
        }
        gone.resident = gone.count();
        self.resident -= gone.resident;
        gone
    }

    fn count(&self) -> u64 {
        let chunks = self.rest.values().chain([&self.first]);
        chunks.map(|chunk| chunk.iter().filter(|&&frame| frame != 0).count() as u64).sum()
    }

    /// Hands every frame's reference to `take`. No spinlock is held.
    pub fn into_frames(self, take: impl Fn(Pfn)) {
        for chunk in core::iter::once(self.first).chain(self.rest.into_values()).paced() {
            chunk.into_iter().filter(|&frame| frame != 0).for_each(|frame| take(Pfn(frame)));
        }
    }

    pub fn next_present(&self, index: u64) -> Option<u64> {
        let (number, slot) = split(index);
        let within = |number: u64, from: usize, chunk: &[u32]| {
            let found = chunk.get(from..)?.iter().position(|&frame| frame != 0)?;
            Some(number * CHUNK + (from + found) as u64)
        };
        if number == 0
            && let Some(found) = within(0, slot, &self.first)
        {
            return Some(found);
        }
        self.rest
            .range(number.max(1)..)
            .find_map(|(&n, chunk)| within(n, if n == number { slot } else { 0 }, chunk))
    }

    pub fn next_absent(&self, index: u64) -> u64 {
        let mut at = index;
        loop {
            let (number, slot) = split(at);
            let chunk = self.chunk(number);
            let Some(rest) = chunk.get(slot..) else { return at };
            match rest.iter().position(|&frame| frame == 0) {
                Some(found) => return at + found as u64,
                None if chunk.len() as u64 == CHUNK => at = (number + 1) * CHUNK,
                None => return number * CHUNK + chunk.len() as u64,
            }
        }
    }
}

/// Takes `start..end` out of a chunk: a chunk of the same shape with only those slots. Whole chunks move;
/// for a part of one a copy is made.
fn take_slots(chunk: &mut Vec<u32>, start: u64, end: u64) -> Vec<u32> {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let end = usize::try_from(end).unwrap_or(usize::MAX).min(chunk.len());
    if start >= end {
        return Vec::new();
    }
    if start == 0 && end == chunk.len() {
        return core::mem::take(chunk);
    }
    let mut taken = alloc::vec![0; end];
    for slot in start..end {
        core::mem::swap(&mut taken[slot], &mut chunk[slot]);
    }
    if end == chunk.len() {
        chunk.truncate(start);
    }
    taken
}
