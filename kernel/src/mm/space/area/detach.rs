//! shmdt: what is left of one attachment goes.
//!
//! Owns nothing. Never unmaps what the program has mapped over the attachment since. Locks: the space's.

use crate::base::PAGE_SIZE;
use crate::mm::layout::page_up;
use crate::mm::page_cache::source::MapSource;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::vma::Vma;
use crate::sync::cond_resched;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::ops::Range;

/// An attachment, and how long it was when it was made.
type Found = (Arc<dyn MapSource>, u64);

impl AddressSpace {
    /// Unmaps the observed source of which the first mapping at `addr` or above would have begun at `addr`, as far as it is
    /// still where it was mapped. `EINVAL` if there is none.
    pub fn detach(&self, addr: u64) -> Result<()> {
        if !addr.is_multiple_of(PAGE_SIZE as u64) {
            return Err(Errno::EINVAL);
        }
        let mut inner = self.inner.lock();
        let (first, (source, size)) = inner.first_part(addr).ok_or(Errno::EINVAL)?;
        inner.unmap_range(self, first.start, first.end)?;
        // No other part can lie beyond the end of the source.
        let end = addr.saturating_add(page_up(size).unwrap_or(u64::MAX));
        let mut next = inner.vmas.at_or_after(first.end);
        while let Some(vma) = next.and_then(|pos| inner.vmas.get(pos)).filter(|vma| vma.end <= end)
        {
            cond_resched();
            let part = vma.start..vma.end;
            if attached(vma, addr).is_some_and(|(other, _)| Arc::ptr_eq(&other, &source)) {
                inner.unmap_range(self, part.start, part.end)?;
            }
            next = inner.vmas.at_or_after(part.end);
        }
        Ok(())
    }
}

impl Inner {
    fn first_part(&self, addr: u64) -> Option<(Range<u64>, Found)> {
        let mut next = self.vmas.at_or_after(addr);
        while let Some((pos, vma)) = next.and_then(|pos| Some((pos, self.vmas.get(pos)?))) {
            cond_resched();
            if let Some(found) = attached(vma, addr) {
                return Some((vma.start..vma.end, found));
            }
            next = self.vmas.next(pos);
        }
        None
    }
}

/// The observed source of a mapping that lies where it would if the source began at `addr`.
fn attached(vma: &Vma, addr: u64) -> Option<Found> {
    let file = vma.file.as_ref()?;
    let size = file.source.observer()?.size();
    let lies_there = vma.start.checked_sub(addr) == Some(vma.offset);
    lies_there.then(|| (file.source.clone(), size))
}
