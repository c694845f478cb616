//! [`Tree`]: from page index to frame.
//!
//! Slots lie in chunks of 512, so that runs of pages are found and mapped by slices. The first chunk, all that
//! most files have, is part of the tree itself. A slot of 0 is a hole: frame 0 is never handed out.

use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::mm::frames::{Pfn, kernel_memory_low};
use crate::sync::Pace;
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

const CHUNK: u64 = 512;

/// Chunks that are taken out under one hold of the tree's lock.
const STEP: usize = 64;

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
            self.rest.try_entry(number, Vec::new).ok()?
        };
        if slot >= chunk.len() {
            if slot >= chunk.capacity() {
                let room = (slot + 1).next_power_of_two().max(4);
                chunk.try_reserve_exact(room - chunk.len()).ok()?;
            }
            chunk.try_resize(slot + 1, 0).ok()?;
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

    /// Begins to take the slots of `indices` out: what of the first chunk, and of those at both ends that stay in part, is taken
    /// now; the steps take the others, which go whole and need no more memory. `ENOMEM`: nothing was changed.
    pub fn take_ends(&mut self, indices: &Range<u64>) -> Result<(Taken, Steps)> {
        let mut ends = Taken { first: Vec::new(), rest: Chunks::Listed(Vec::new()), resident: 0 };
        let mut steps = Steps { left: 0..0, chunks: Vec::new(), resident: 0 };
        if indices.is_empty() || self.is_empty() {
            return Ok((ends, steps));
        }
        let (low, high) = (indices.start / CHUNK, (indices.end - 1) / CHUNK);
        // What of a chunk goes.
        let part = |number: u64, len: usize| {
            let (low, high) = (number * CHUNK, number.saturating_mul(CHUNK).saturating_add(CHUNK));
            let slot = |index: u64| usize::try_from(index - low).unwrap_or(usize::MAX).min(len);
            slot(indices.start.max(low))..slot(indices.end.min(high))
        };
        // All memory is found before anything changes.
        let mut listed = Vec::new();
        let mut spares = [Vec::new(), Vec::new()];
        let numbers = [low, high];
        let numbers = if low == high { &numbers[..1] } else { &numbers[..] };
        for (spare, &number) in spares.iter_mut().zip(numbers) {
            let chunk = self.chunk(number);
            let part = part(number, chunk.len());
            if !part.is_empty() && part.len() < chunk.len() {
                spare.try_room(part.len())?;
            }
            if number != 0 && !part.is_empty() {
                listed.try_room(numbers.len())?;
            }
        }
        steps.left = (low + 1).min(high)..high;
        if self.rest.range(steps.left.clone()).next().is_some() {
            steps.chunks.try_room(STEP)?;
        }
        for (spare, &number) in spares.into_iter().zip(numbers) {
            if number == 0 {
                let part = part(0, self.first.len());
                ends.first = take_slots(&mut self.first, part, spare)?;
            } else if let Some(chunk) = self.rest.get_mut(&number) {
                let part = part(number, chunk.len());
                if !part.is_empty() {
                    listed.try_push(take_slots(chunk, part, spare)?)?;
                }
                if chunk.is_empty() {
                    self.rest.remove(&number);
                }
            }
        }
        ends.rest = Chunks::Listed(listed);
        ends.resident = ends.count();
        self.resident -= ends.resident;
        Ok((ends, steps))
    }

    /// Takes the next whole chunks: the index up to which all are gone. None: there are no more.
    pub fn take_step(&mut self, steps: &mut Steps) -> Option<u64> {
        // Without room nothing was there at the beginning; what has come since may stay.
        while steps.chunks.len() < STEP.min(steps.chunks.capacity()) {
            let Some((&number, _)) = self.rest.range(steps.left.clone()).next() else { break };
            let chunk = self.rest.remove(&number)?;
            steps.resident += present(&chunk);
            steps.left.start = number + 1;
            #[expect(clippy::disallowed_methods, reason = "there is room for a step")]
            steps.chunks.push(chunk);
        }
        self.resident -= steps.resident;
        (!steps.chunks.is_empty()).then(|| steps.left.start.saturating_mul(CHUNK))
    }

    /// All of it, to be freed.
    pub fn into_taken(self) -> Taken {
        Taken { first: self.first, rest: Chunks::Mapped(self.rest), resident: self.resident }
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

/// Slots that were taken out of a tree, by chunks; each that is not a hole owns a reference.
pub(super) struct Taken {
    first: Vec<u32>,
    rest: Chunks,
    resident: u64,
}

/// Further chunks: in a list, or still in the tree's own map.
enum Chunks {
    Listed(Vec<Vec<u32>>),
    Mapped(BTreeMap<u64, Vec<u32>>),
}

impl Taken {
    pub fn resident(&self) -> u64 {
        self.resident
    }

    pub fn is_empty(&self) -> bool {
        self.resident == 0
    }

    fn count(&self) -> u64 {
        let rest: u64 = match &self.rest {
            Chunks::Listed(chunks) => chunks.iter().map(|chunk| present(chunk)).sum(),
            Chunks::Mapped(chunks) => chunks.values().map(|chunk| present(chunk)).sum(),
        };
        present(&self.first) + rest
    }

    /// Hands every frame's reference to `take`. No spinlock is held.
    pub fn into_frames(self, take: impl Fn(Pfn)) {
        let give = |chunk: Vec<u32>| give_frames(&chunk, &take);
        give(self.first);
        match self.rest {
            Chunks::Listed(chunks) => chunks.into_iter().paced().for_each(give),
            Chunks::Mapped(chunks) => chunks.into_values().paced().for_each(give),
        }
    }
}

/// Whole chunks on their way out of a tree, so many at a time that its spinlock is not held for long.
pub(super) struct Steps {
    /// Numbers of the chunks that are still there.
    left: Range<u64>,
    /// Those of this step; there is room for [`STEP`] if any is left.
    chunks: Vec<Vec<u32>>,
    resident: u64,
}

impl Steps {
    /// How many pages were taken in this step.
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// Hands the references of this step to `take`. No spinlock is held.
    pub fn give(&mut self, take: impl Fn(Pfn)) {
        self.chunks.drain(..).paced().for_each(|chunk| give_frames(&chunk, &take));
        self.resident = 0;
    }
}

fn give_frames(chunk: &[u32], take: &impl Fn(Pfn)) {
    chunk.iter().filter(|&&frame| frame != 0).for_each(|&frame| take(Pfn(frame)));
}

fn present(chunk: &[u32]) -> u64 {
    chunk.iter().filter(|&&frame| frame != 0).count() as u64
}

/// Takes the slots of `part` out of a chunk. Whole chunks move; a part of one goes to `spare`, which has room.
fn take_slots(chunk: &mut Vec<u32>, part: Range<usize>, mut spare: Vec<u32>) -> Result<Vec<u32>> {
    if part.is_empty() {
        return Ok(spare);
    }
    if part.len() == chunk.len() {
        return Ok(core::mem::take(chunk));
    }
    let (start, end) = (part.start, part.end);
    spare.try_extend_from_slice(&chunk[part])?;
    chunk[start..end].fill(0);
    if end == chunk.len() {
        chunk.truncate(start);
    }
    Ok(spare)
}
