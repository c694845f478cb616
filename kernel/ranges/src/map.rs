//! [`RangeMap`]: lookup, insertion and removal.
//!
//! Invariants: no leaf is empty; the ranges are not empty, do not overlap and ascend within and across
//! leaves; when there are several leaves, `Leaf::gap` is at least the largest space below any of its ranges,
//! and `blocks` holds for every [`BLOCK`] leaves at least the largest of theirs. A change only ever raises
//! these bounds, in O(1); a search that was misled by one makes it exact.

use alloc::vec::Vec;

/// Most ranges in a leaf.
pub(crate) const LEAF: usize = 64;
/// Leaves that share a bound.
pub(crate) const BLOCK: usize = 8;

/// An address range.
pub trait Span {
    /// First address.
    fn start(&self) -> u64;
    /// The address after the last.
    fn end(&self) -> u64;
    /// How much space below `start` a new range must leave free.
    fn guard(&self) -> u64 {
        0
    }
}

/// An allocation failed; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// The place of a range; valid until the next insertion or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pos {
    leaf: u32,
    index: u32,
}

impl Pos {
    pub(crate) fn leaf(self) -> usize {
        self.leaf as usize
    }
}

#[derive(Debug)]
pub(crate) struct Leaf<S> {
    pub(crate) spans: Vec<S>,
    pub(crate) gap: u64,
}

/// An ordered map of disjoint address ranges.
#[derive(Debug)]
pub struct RangeMap<S> {
    pub(crate) leaves: Vec<Leaf<S>>,
    /// Empty while there is no more than one leaf.
    pub(crate) blocks: Vec<u64>,
    len: usize,
}

impl<S> Default for RangeMap<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> RangeMap<S> {
    /// An empty map.
    pub const fn new() -> Self {
        Self { leaves: Vec::new(), blocks: Vec::new(), len: 0 }
    }

    /// How many ranges there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &S> {
        self.leaves.iter().flat_map(|leaf| leaf.spans.iter())
    }

    /// The ranges in ascending order, by value and a few dozen at a time.
    pub fn into_pieces(self) -> impl Iterator<Item = Vec<S>> {
        self.leaves.into_iter().map(|leaf| leaf.spans)
    }

    /// The range at `pos`.
    #[inline]
    pub fn get(&self, pos: Pos) -> Option<&S> {
        self.leaves.get(pos.leaf as usize)?.spans.get(pos.index as usize)
    }

    /// The place of the first range.
    pub fn first(&self) -> Option<Pos> {
        (!self.leaves.is_empty()).then_some(Pos { leaf: 0, index: 0 })
    }

    /// The place after `pos`.
    #[inline]
    pub fn next(&self, pos: Pos) -> Option<Pos> {
        let leaf = self.leaves.get(pos.leaf as usize)?;
        if pos.index as usize + 1 < leaf.spans.len() {
            return Some(Pos { leaf: pos.leaf, index: pos.index + 1 });
        }
        ((pos.leaf as usize + 1) < self.leaves.len())
            .then_some(Pos { leaf: pos.leaf + 1, index: 0 })
    }

    /// The place before `pos`.
    #[inline]
    pub fn prev(&self, pos: Pos) -> Option<Pos> {
        if pos.index > 0 {
            return Some(Pos { leaf: pos.leaf, index: pos.index - 1 });
        }
        let leaf = pos.leaf.checked_sub(1)?;
        let last = self.leaves.get(leaf as usize)?.spans.len().checked_sub(1)?;
        Some(Pos { leaf, index: last as u32 })
    }

    /// A copy whose ranges are what `copy` makes of each; those it gives `None` for are left out.
    pub fn try_clone_with(&self, mut copy: impl FnMut(&S) -> Option<S>) -> Result<Self, OutOfMemory>
    where
        S: Span,
    {
        let mut new = Self::new();
        new.leaves.try_reserve_exact(self.leaves.len()).map_err(|_| OutOfMemory)?;
        for leaf in &self.leaves {
            let mut spans = Vec::new();
            spans.try_reserve_exact(room(leaf.spans.len())).map_err(|_| OutOfMemory)?;
            spans.extend(leaf.spans.iter().filter_map(&mut copy));
            if !spans.is_empty() {
                new.len += spans.len();
                new.leaves.push(Leaf { spans, gap: leaf.gap });
            }
        }
        if new.leaves.len() > 1 {
            // What was left out may have been all that kept two spaces apart.
            if new.len != self.len {
                (0..new.leaves.len()).for_each(|leaf| new.measure(leaf));
            }
            new.update_blocks(0)?;
        }
        Ok(new)
    }
}

impl<S: Span> RangeMap<S> {
    /// The first range that ends after `addr`: the one that holds it, or else the next above.
    #[inline]
    pub fn at_or_after(&self, addr: u64) -> Option<Pos> {
        let leaf = if self.leaves.len() <= 1 {
            0
        } else {
            self.leaves.partition_point(|leaf| leaf.spans.last().is_some_and(|s| s.end() <= addr))
        };
        let spans = &self.leaves.get(leaf)?.spans;
        if spans.last().is_none_or(|last| last.end() <= addr) {
            // Beyond all, where mappings of a new program are put one after the other.
            return None;
        }
        let index = spans.partition_point(|span| span.end() <= addr);
        (index < spans.len()).then_some(Pos { leaf: leaf as u32, index: index as u32 })
    }

    /// The range that holds `addr`.
    #[inline]
    pub fn find(&self, addr: u64) -> Option<Pos> {
        let pos = self.at_or_after(addr)?;
        (self.get(pos)?.start() <= addr).then_some(pos)
    }

    /// The range that holds `addr`, itself.
    #[inline]
    pub fn at(&self, addr: u64) -> Option<&S> {
        self.get(self.find(addr)?)
    }

    /// The last range that starts before `addr`.
    pub fn before(&self, addr: u64) -> Option<Pos> {
        let spans = &self.leaves.last()?.spans;
        if let Some(last) = spans.last()
            && last.start() < addr
        {
            let (leaf, index) = (self.leaves.len() - 1, spans.len() - 1);
            return Some(Pos { leaf: leaf as u32, index: index as u32 });
        }
        let leaf =
            self.leaves.partition_point(|l| l.spans.first().is_some_and(|s| s.start() < addr));
        let leaf = leaf.checked_sub(1)?;
        let index = self.leaves.get(leaf)?.spans.partition_point(|span| span.start() < addr);
        Some(Pos { leaf: leaf as u32, index: index.checked_sub(1)? as u32 })
    }

    /// Whether no range meets `start..end`.
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.at_or_after(start).and_then(|pos| self.get(pos)).is_none_or(|s| s.start() >= end)
    }

    /// Changes the range at `pos` in place. The change must keep the order and leave no overlap.
    pub fn update(&mut self, pos: Pos, change: impl FnOnce(&mut S)) {
        if let Some(span) =
            self.leaves.get_mut(pos.leaf as usize).and_then(|l| l.spans.get_mut(pos.index as usize))
        {
            change(span);
            self.widened(Some(pos));
            self.widened(self.next(pos));
        }
    }

    /// As [`update`](Self::update), for changes that leave start, end and guard alone.
    #[inline]
    pub fn get_mut(&mut self, pos: Pos) -> Option<&mut S> {
        self.leaves.get_mut(pos.leaf as usize)?.spans.get_mut(pos.index as usize)
    }

    /// Puts in a range that meets no other.
    pub fn insert(&mut self, span: S) -> Result<Pos, (OutOfMemory, S)> {
        debug_assert!(span.start() < span.end() && self.is_free(span.start(), span.end()));
        match self.make_room(span.start()) {
            Ok(pos) => {
                self.leaves[pos.leaf as usize].spans.insert(pos.index as usize, span);
                self.len += 1;
                // The space below it may have been the next leaf's.
                self.widened(Some(pos));
                Ok(pos)
            }
            Err(error) => Err((error, span)),
        }
    }

    /// Takes the range at `pos` out.
    pub fn remove(&mut self, pos: Pos) -> Option<S> {
        let leaf = self.leaves.get_mut(pos.leaf as usize)?;
        if pos.index as usize >= leaf.spans.len() {
            return None;
        }
        let span = leaf.spans.remove(pos.index as usize);
        self.len -= 1;
        if leaf.spans.is_empty() {
            self.leaves.remove(pos.leaf as usize);
            self.shifted(pos.leaf as usize);
            self.widened(Some(Pos { leaf: pos.leaf, index: 0 }));
        } else {
            // The range that now stands at `pos`, or the first of the next leaf.
            let after = if (pos.index as usize) < leaf.spans.len() {
                pos
            } else {
                Pos { leaf: pos.leaf + 1, index: 0 }
            };
            self.widened(Some(after));
            self.join_with_next(pos.leaf as usize);
        }
        Some(span)
    }

    /// The place where a range that starts at `start` belongs, with room in its leaf.
    fn make_room(&mut self, start: u64) -> Result<Pos, OutOfMemory> {
        if self.leaves.is_empty() {
            self.leaves.try_reserve(1).map_err(|_| OutOfMemory)?;
            self.leaves.push(Leaf { spans: Vec::new(), gap: 0 });
        }
        let mut leaf = self
            .leaves
            .partition_point(|l| l.spans.first().is_some_and(|s| s.start() < start))
            .saturating_sub(1);
        if self.leaves[leaf].spans.len() >= LEAF {
            self.split(leaf)?;
            if self.leaves[leaf + 1].spans[0].start() < start {
                leaf += 1;
            }
        }
        let spans = &mut self.leaves[leaf].spans;
        if spans.len() == spans.capacity() {
            let more = room(spans.len() + 1) - spans.len();
            if spans.try_reserve_exact(more).is_err() {
                if spans.is_empty() {
                    self.leaves.remove(leaf);
                }
                return Err(OutOfMemory);
            }
        }
        let index = match spans.last() {
            Some(last) if last.start() >= start => {
                spans.partition_point(|span| span.start() < start)
            }
            _ => spans.len(),
        };
        Ok(Pos { leaf: leaf as u32, index: index as u32 })
    }

    fn split(&mut self, leaf: usize) -> Result<(), OutOfMemory> {
        let mut upper = Vec::new();
        upper.try_reserve_exact(LEAF).map_err(|_| OutOfMemory)?;
        self.leaves.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.blocks.try_reserve(self.leaves.len() / BLOCK + 1).map_err(|_| OutOfMemory)?;
        upper.extend(self.leaves[leaf].spans.drain(LEAF / 2..));
        self.leaves.insert(leaf + 1, Leaf { spans: upper, gap: 0 });
        self.measure(leaf);
        self.measure(leaf + 1);
        self.shifted(leaf);
        Ok(())
    }

    /// Joins two small neighbours when the first has room for both.
    fn join_with_next(&mut self, leaf: usize) {
        let [a, b, ..] = &mut self.leaves[leaf..] else { return };
        if a.spans.len() + b.spans.len() > LEAF / 2
            || a.spans.capacity() < a.spans.len() + b.spans.len()
        {
            return;
        }
        a.spans.append(&mut b.spans);
        a.gap = a.gap.max(b.gap);
        self.leaves.remove(leaf + 1);
        self.shifted(leaf);
    }

    /// Raises the bounds over the space below the range at `pos`.
    #[inline]
    fn widened(&mut self, pos: Option<Pos>) {
        if self.leaves.len() <= 1 {
            return;
        }
        let Some((pos, span)) = pos.and_then(|pos| Some((pos, self.get(pos)?))) else { return };
        let below = self.prev(pos).and_then(|pos| self.get(pos)).map_or(0, S::end);
        let gap = span.start().saturating_sub(span.guard()).saturating_sub(below);
        let leaf = &mut self.leaves[pos.leaf as usize];
        leaf.gap = leaf.gap.max(gap);
        let block = &mut self.blocks[pos.leaf as usize / BLOCK];
        *block = (*block).max(gap);
    }

    /// Leaves were inserted or removed from `leaf` on; there is room for the bounds.
    fn shifted(&mut self, leaf: usize) {
        let _room = self.update_blocks(leaf / BLOCK);
        debug_assert!(_room.is_ok(), "split reserves, and all else has fewer leaves");
    }
}

impl<S> RangeMap<S> {
    /// Makes the bound of one leaf exact.
    pub(crate) fn measure(&mut self, leaf: usize)
    where
        S: Span,
    {
        let mut below =
            leaf.checked_sub(1).and_then(|l| self.leaves[l].spans.last()).map_or(0, S::end);
        let mut gap = 0;
        for span in &self.leaves[leaf].spans {
            gap = gap.max(span.start().saturating_sub(span.guard()).saturating_sub(below));
            below = span.end();
        }
        self.leaves[leaf].gap = gap;
    }

    /// Takes the bounds of the blocks from `first` on from their leaves.
    pub(crate) fn update_blocks(&mut self, first: usize) -> Result<(), OutOfMemory> {
        if self.leaves.len() <= 1 {
            self.blocks.clear();
            return Ok(());
        }
        let first = first.min(self.blocks.len());
        self.blocks.truncate(first);
        let rest = &self.leaves[first * BLOCK..];
        self.blocks.try_reserve(rest.len().div_ceil(BLOCK)).map_err(|_| OutOfMemory)?;
        let bound = |block: &[Leaf<S>]| block.iter().map(|leaf| leaf.gap).fold(0, u64::max);
        self.blocks.extend(rest.chunks(BLOCK).map(bound));
        Ok(())
    }
}

/// The capacity for a leaf of `len` ranges.
fn room(len: usize) -> usize {
    len.next_multiple_of(16).min(LEAF)
}
