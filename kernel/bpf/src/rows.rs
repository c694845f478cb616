//! Rows of comparisons of one value with many numbers, which is what most of a filter is: found when a program is checked, and looked up by
//! one step where the numbers lie close together, by halving elsewhere.
//!
//! Comparisons that stand in a row, and go on with the next one when they say no, are one table: sorted by number, the first of a number
//! first. Only the first of a row is replaced, so that jumps into the middle of it find what they did. Owns nothing.

use crate::check::Refusal;
use crate::op::Op;
use alloc::vec::Vec;

/// Comparisons that are worth a table.
const LEAST: usize = 6;

/// How many places of a table without gaps one case may take.
const SPARSE: usize = 4;

/// The number, which instruction compares with it, and how many it passes over then.
type Case = (u32, u16, u8);

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    cases: Cases,
    /// The instruction behind the row.
    end: usize,
}

#[derive(Debug)]
enum Cases {
    /// Where each number from the first on leads to.
    Close(u32, Vec<u16>),
    Sorted(Vec<Case>),
}

/// The instruction that a comparison leads to if it holds.
fn target((_, at, by): Case) -> usize {
    usize::from(at).saturating_add(usize::from(by)).saturating_add(1)
}

impl Row {
    /// The instruction that A leads to.
    #[inline]
    pub(crate) fn target(&self, a: u32) -> usize {
        match &self.cases {
            Cases::Close(first, targets) => {
                let place = usize::try_from(a.wrapping_sub(*first)).ok();
                let target = place.and_then(|place| targets.get(place));
                target.map_or(self.end, |target| usize::from(*target))
            }
            Cases::Sorted(cases) => {
                let found = cases.binary_search_by_key(&a, |case| case.0).ok();
                let case = found.and_then(|at| cases.get(at));
                case.map_or(self.end, |case| target(*case))
            }
        }
    }

    fn new(cases: Vec<Case>, end: usize) -> Result<Self, Refusal> {
        let cases = match close(&cases, end)? {
            Some((first, targets)) => Cases::Close(first, targets),
            None => Cases::Sorted(cases),
        };
        Ok(Self { cases, end })
    }
}

/// The table without gaps, if the numbers, which are sorted, lie close together: all that are missing lead to `end`.
fn close(cases: &[Case], end: usize) -> Result<Option<(u32, Vec<u16>)>, Refusal> {
    let (Some(first), Some(last), Ok(end)) = (cases.first(), cases.last(), u16::try_from(end))
    else {
        return Ok(None);
    };
    let width = usize::try_from(last.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
    if width >= cases.len().saturating_mul(SPARSE) {
        return Ok(None);
    }
    let mut targets = Vec::new();
    targets.try_reserve_exact(width.saturating_add(1)).map_err(|_| Refusal::NoMemory)?;
    targets.resize(width.saturating_add(1), end);
    for case in cases {
        let place = usize::try_from(case.0.wrapping_sub(first.0)).ok();
        // A program is shorter than what 16 bits tell.
        if let (Some(place), Ok(to)) =
            (place.and_then(|place| targets.get_mut(place)), u16::try_from(target(*case)))
        {
            *place = to;
        }
    }
    Ok(Some((first.0, targets)))
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
        rows.push(Row::new(cases, end)?);
        if let Some(first) = ops.get_mut(at) {
            *first = Op::Row(number);
        }
        at = end;
    }
    Ok(rows)
}
