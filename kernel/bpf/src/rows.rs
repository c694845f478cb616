//! Rows of comparisons of one value with many numbers, which is what most of a filter is: found when a program is checked, and looked up by halving.
//!
//! Comparisons that stand in a row, and go on with the next one when they say no, are one table: sorted by number, the first of a number
//! first. Only the first of a row is replaced, so that jumps into the middle of it find what they did. Owns nothing.

use crate::check::Refusal;
use crate::op::Op;
use alloc::vec::Vec;

/// Comparisons that are worth a table.
const LEAST: usize = 6;

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    /// The number, which instruction compares with it, and how many it passes over then.
    cases: Vec<(u32, u16, u8)>,
    /// The instruction behind the row.
    end: usize,
}

impl Row {
    /// The instruction that A leads to.
    #[inline]
    pub(crate) fn target(&self, a: u32) -> usize {
        let found = self.cases.binary_search_by_key(&a, |case| case.0).ok();
        let case = found.and_then(|at| self.cases.get(at));
        case.map_or(self.end, |(_, at, by)| {
            usize::from(*at).saturating_add(usize::from(*by)).saturating_add(1)
        })
    }
}

/// Replaces the first comparison of each row.
pub(crate) fn find(ops: &mut [Op]) -> Result<Vec<Row>, Refusal> {
    let mut rows = Vec::new();
    let mut at = 0;
    while at < ops.len() {
        let rest = ops.get(at..).unwrap_or_default();
        let in_row = |op: &&Op| matches!(op, Op::EqK(_, 0, _));
        let len = rest.iter().take_while(in_row).count();
        if len < LEAST {
            at = at.saturating_add(len.max(1));
            continue;
        }
        let end = at.saturating_add(len);
        let mut cases = Vec::new();
        cases.try_reserve_exact(len).map_err(|_| Refusal::NoMemory)?;
        for (place, op) in (at..end).zip(rest) {
            if let (Op::EqK(by, _, k), Ok(place)) = (op, u16::try_from(place)) {
                cases.push((*k, place, *by));
            }
        }
        cases.sort_unstable();
        cases.dedup_by_key(|case| case.0);
        let number = u16::try_from(rows.len()).map_err(|_| Refusal::Length)?;
        rows.try_reserve(1).map_err(|_| Refusal::NoMemory)?;
        rows.push(Row { cases, end });
        if let Some(first) = ops.get_mut(at) {
            *first = Op::Row(number);
        }
        at = end;
    }
    Ok(rows)
}
