//! The search for free space in a [`RangeMap`].

use crate::map::{BLOCK, Leaf, RangeMap, Span};

impl<S: Span> RangeMap<S> {
    /// The highest address where `len` free bytes fit into `low..high`, guards of the ranges above respected.
    pub fn highest_gap(&mut self, len: u64, low: u64, high: u64) -> Option<u64> {
        let mut ceiling = high;
        let mut n = self.leaves.len();
        while let Some(at) = n.checked_sub(1) {
            n = at;
            let leaf = &self.leaves[at];
            let last_end = leaf.spans.last().map_or(0, S::end);
            // Space above this leaf's last range, up to the range above it.
            if let Some(found) = fit_high(len, low.max(last_end), ceiling) {
                return Some(found);
            }
            if last_end <= low {
                return None;
            }
            if self.is_too_narrow(at, len) {
                if self.blocks[at / BLOCK] < len {
                    n = at / BLOCK * BLOCK;
                }
                ceiling = high.min(bottom(&self.leaves[n]));
                continue;
            }
            let below =
                at.checked_sub(1).and_then(|n| self.leaves[n].spans.last()).map_or(0, S::end);
            let floors = leaf.spans.iter().map(S::end).rev().skip(1).chain([below]);
            for (span, floor) in leaf.spans.iter().rev().zip(floors) {
                // Most are told by this alone, whatever the guard is.
                if span.start().saturating_sub(floor) >= len {
                    let ceiling = high.min(span.start().saturating_sub(span.guard()));
                    if let Some(found) = fit_high(len, low.max(floor), ceiling) {
                        return Some(found);
                    }
                }
                if floor <= low {
                    return None;
                }
            }
            ceiling = high.min(bottom(leaf));
            self.tighten(at);
        }
        fit_high(len, low, ceiling)
    }

    /// The lowest address where `len` free bytes fit into `low..high`, guards of the ranges above respected.
    pub fn lowest_gap(&mut self, len: u64, low: u64, high: u64) -> Option<u64> {
        let mut floor = low;
        let mut next = match self.at_or_after(low) {
            Some(pos) => pos.leaf(),
            None => self.leaves.len(),
        };
        while let Some(leaf) = self.leaves.get(next) {
            let at = next;
            next += 1;
            if self.is_too_narrow(at, len) {
                if self.blocks[at / BLOCK] < len {
                    next = ((at / BLOCK + 1) * BLOCK).min(self.leaves.len());
                }
                floor = floor.max(self.leaves[next - 1].spans.last().map_or(0, S::end));
                continue;
            }
            for span in &leaf.spans {
                let ceiling = span.start().saturating_sub(span.guard()).min(high);
                if fit_high(len, floor, ceiling).is_some() {
                    return Some(floor);
                }
                floor = floor.max(span.end());
                if floor >= high {
                    return None;
                }
            }
            self.tighten(at);
        }
        fit_high(len, floor, high).map(|_| floor)
    }

    /// Whether no space below a range of `leaf` has `len` bytes.
    fn is_too_narrow(&self, leaf: usize, len: u64) -> bool {
        self.leaves.len() > 1 && self.leaves[leaf].gap < len
    }

    /// A search found nothing in `leaf` and shall not look again.
    fn tighten(&mut self, leaf: usize) {
        if self.leaves.len() <= 1 {
            return;
        }
        self.measure(leaf);
        let first = leaf / BLOCK * BLOCK;
        let block = &self.leaves[first..(first + BLOCK).min(self.leaves.len())];
        self.blocks[leaf / BLOCK] = block.iter().map(|leaf| leaf.gap).fold(0, u64::max);
    }
}

/// The end of the space below a leaf's first range.
fn bottom<S: Span>(leaf: &Leaf<S>) -> u64 {
    leaf.spans.first().map_or(0, |span| span.start().saturating_sub(span.guard()))
}

/// The highest place for `len` in `floor..ceiling`.
#[inline]
fn fit_high(len: u64, floor: u64, ceiling: u64) -> Option<u64> {
    let at = ceiling.checked_sub(len)?;
    (at >= floor).then_some(at)
}
