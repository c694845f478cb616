//! The search for free space in a [`RangeMap`].

use crate::map::{RangeMap, Span};

impl<S: Span> RangeMap<S> {
    /// The highest address where `len` free bytes fit into `low..high`, guards of the ranges above respected.
    pub fn highest_gap(&self, len: u64, low: u64, high: u64) -> Option<u64> {
        let mut ceiling = high;
        for (n, leaf) in self.leaves.iter().enumerate().rev() {
            let below =
                n.checked_sub(1).and_then(|n| self.leaves[n].spans.last()).map_or(0, S::end);
            let last_end = leaf.spans.last().map_or(0, S::end);
            // Space above this leaf's last range, up to the range above it.
            if let Some(found) = fit_high(len, low.max(last_end), ceiling) {
                return Some(found);
            }
            if last_end <= low {
                return None;
            }
            let bottom = leaf.spans.first().map_or(0, |s| s.start().saturating_sub(s.guard()));
            if self.leaves.len() > 1 && leaf.gap < len {
                ceiling = high.min(bottom);
                continue;
            }
            for (i, span) in leaf.spans.iter().enumerate().rev() {
                ceiling = high.min(span.start().saturating_sub(span.guard()));
                let floor = i.checked_sub(1).map_or(below, |i| leaf.spans[i].end());
                if let Some(found) = fit_high(len, low.max(floor), ceiling) {
                    return Some(found);
                }
                if floor <= low {
                    return None;
                }
            }
        }
        fit_high(len, low, ceiling)
    }

    /// The lowest address where `len` free bytes fit into `low..high`, guards of the ranges above respected.
    pub fn lowest_gap(&self, len: u64, low: u64, high: u64) -> Option<u64> {
        let mut floor = low;
        for leaf in &self.leaves {
            let last_end = leaf.spans.last().map_or(0, S::end);
            if last_end <= floor {
                continue;
            }
            if self.leaves.len() > 1 && leaf.gap < len {
                floor = floor.max(last_end);
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
        }
        fit_high(len, floor, high).map(|_| floor)
    }
}

/// The highest place for `len` in `floor..ceiling`.
fn fit_high(len: u64, floor: u64, ceiling: u64) -> Option<u64> {
    let at = ceiling.checked_sub(len)?;
    (at >= floor).then_some(at)
}
