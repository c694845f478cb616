//! munmap, and taking pages out of mappings.
//!
//! Owns how many mappings there may be. Never frees a page before all CPUs have forgotten it. Locks: those of its callers.

use crate::base::PAGE_SIZE;
use crate::base::page::{USER_END, USER_HALF};
use crate::mm::frames::LARGE_PAGES;
use crate::mm::layout::{PAGE_SHIFT, page_up};
use crate::mm::page_cache::PageCache;
use crate::mm::space::registry;
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::{Gather, Was};
use crate::mm::space::table::{LeafState, OWNED, ZERO};
use crate::sync::{Pace, cond_resched};
use abi::{Errno, Result};
use core::ops::Range;
use core::sync::atomic::Ordering;

crate::setting! {
    /// Most mappings in a space, as on Linux.
    pub static MAX_MAP_COUNT = 65530, 0..=i32::MAX;
}

impl AddressSpace {
    /// munmap.
    pub fn unmap(&self, addr: u64, len: u64) -> Result<()> {
        let range = page_range(addr, len).ok_or(Errno::EINVAL)?;
        if range.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.inner.lock().unmap_range(self, range.start, range.end)
    }
}

/// The pages of `addr..addr + len`; `None` unless `addr` is aligned and all of it is user space.
pub(super) fn page_range(addr: u64, len: u64) -> Option<Range<u64>> {
    let end = addr.checked_add(page_up(len)?)?;
    (addr.is_multiple_of(PAGE_SIZE as u64) && end <= USER_END).then_some(addr..end)
}

impl Inner {
    /// Takes all mappings out of `start..end`.
    pub(super) fn unmap_range(&mut self, space: &AddressSpace, start: u64, end: u64) -> Result<()> {
        if self.vmas.is_free(start, end) {
            return Ok(());
        }
        self.split_at(start)?;
        self.split_at(end)?;
        self.own_edges(start, end, &space.cpus)?;
        let mut gather = Gather::new(&space.cpus);
        while let Some(pos) = self.vmas.at_or_after(start) {
            cond_resched();
            if self.vmas.get(pos).is_none_or(|vma| vma.start >= end) {
                break;
            }
            let Some(vma) = self.vmas.remove(pos) else { break };
            self.account(vma.flags, vma.pages(), -1);
            self.zap(&mut gather, vma.flags, vma.start..vma.end, true);
        }
        self.free_tables(&mut gather, start, end);
        Ok(())
    }

    /// Gives back page tables of `start..end`, which was unmapped, that map nothing else.
    pub(super) fn free_tables(&mut self, gather: &mut Gather<'_>, start: u64, end: u64) {
        let floor = self.vmas.before(start).and_then(|pos| self.vmas.get(pos)).map_or(0, |v| v.end);
        let ceiling = self.vmas.at_or_after(end).and_then(|pos| self.vmas.get(pos));
        let ceiling = ceiling.map_or(USER_HALF, |vma| vma.start);
        self.table.free_tables(start, end, floor..ceiling, &mut |table| gather.table(table));
    }

    /// Clears the page-table entries of `range`, part of a mapping with `flags`; private copies only if `copies`.
    pub(super) fn zap(
        &mut self,
        gather: &mut Gather<'_>,
        flags: VmFlags,
        range: Range<u64>,
        copies: bool,
    ) {
        let Range { start, end } = range;
        let (mut owned, mut borrowed) = (0i64, 0i64);
        let mut at = start;
        while let Some(part) = self.table.next_leaf(at, end) {
            at = part.addr_of(part.range.end);
            match part.state {
                LeafState::Own => {}
                LeafState::Shared => {
                    // Otherwise no page of this mapping is in it: see `own_edges`.
                    if let Some((table, pages)) = self.table.detach(&part) {
                        owned = owned.wrapping_add(pages);
                        gather.shared_table(table);
                    }
                    continue;
                }
                LeafState::Large => {
                    if let Some(table) = self.table.detach_large(&part) {
                        owned = owned.wrapping_add(LARGE_PAGES as i64);
                        gather.large(part.addr, table);
                    }
                    continue;
                }
            }
            part.table.for_each_group(part.range.clone(), |group| {
                for (index, slot) in part.table.slots(&group) {
                    // Relaxed: the lock of the space orders the software.
                    let entry = slot.load(Ordering::Relaxed);
                    if entry & OWNED == 0 {
                        if entry != 0 {
                            borrowed = borrowed.wrapping_add(i64::from(entry & ZERO == 0));
                            gather.clear(part.addr_of(index), slot, entry);
                        }
                    } else if copies {
                        owned = owned.wrapping_add(1);
                        let was = Was::exchange(slot, entry, 0);
                        gather.removed(part.addr_of(index), was);
                    }
                }
            });
        }
        self.count_rss(flags, true, -owned);
        self.count_rss(flags, false, -borrowed);
    }

    /// Makes `addr` a boundary between mappings, if it lies inside one.
    pub(super) fn split_at(&mut self, addr: u64) -> Result<()> {
        let Some(pos) = self.vmas.find(addr) else { return Ok(()) };
        let Some(vma) = self.vmas.get(pos).filter(|vma| vma.start != addr) else { return Ok(()) };
        if vma.flags.intersects(VmFlags::SPECIAL.union(VmFlags::WHOLE)) {
            // As on Linux, the vDSO goes whole or not at all, and so does the buffer of an event.
            return Err(Errno::EINVAL);
        }
        if self.vmas.len() >= MAX_MAP_COUNT.get() as usize {
            return Err(Errno::ENOMEM);
        }
        let mut upper = None;
        self.vmas.update(pos, |vma| upper = Some(vma.split_off(addr)));
        let Some(upper) = upper else { return Ok(()) };
        match self.vmas.insert(upper) {
            Ok(_) => Ok(()),
            Err((_, upper)) => {
                self.vmas.update(pos, |vma| vma.end = upper.end);
                Err(Errno::ENOMEM)
            }
        }
    }

    /// Joins mappings that continue each other, from the one before `start` to the one after `end`.
    pub(super) fn merge(&mut self, start: u64, end: u64) {
        let mut pos = match self.vmas.before(start).or_else(|| self.vmas.first()) {
            Some(pos) => pos,
            None => return,
        };
        while let Some(next) = self.vmas.next(pos) {
            cond_resched();
            let (Some(a), Some(b)) = (self.vmas.get(pos), self.vmas.get(next)) else { return };
            if a.start > end {
                return;
            }
            if !a.continues_into(b) {
                pos = next;
                continue;
            }
            if let Some(b) = self.vmas.remove(next) {
                let Some(same) = self.vmas.find(b.start - 1) else { return };
                self.vmas.update(same, |vma| {
                    vma.end = b.end;
                    vma.flags |= b.flags & VmFlags::HAS_ANON;
                });
                pos = same;
            }
        }
    }
}

/// Takes pages of `cache` out of every address space that maps them; private copies too, if `copies`.
pub(in crate::mm) fn unmap_everywhere(cache: &PageCache, indices: Range<u64>, copies: bool) {
    registry::for_each(|space| {
        let mut inner = space.inner.lock();
        let mut gather = Gather::new(&space.cpus);
        let mut next = inner.vmas.first();
        while let Some(pos) = next {
            cond_resched();
            next = inner.vmas.next(pos);
            let Some(vma) = inner.vmas.get(pos) else { break };
            let Some(file) = &vma.file else { continue };
            if !core::ptr::eq(&*file.cache, cache) {
                continue;
            }
            let first = vma.index_of(vma.start);
            let low = indices.start.max(first);
            let high = indices.end.min(first + vma.pages());
            if low < high {
                let at = |index: u64| vma.start + ((index - first) << PAGE_SHIFT);
                let (start, end) = (at(low), at(high));
                let flags = vma.flags;
                inner.zap(&mut gather, flags, start..end, copies);
            }
        }
    });
}

/// Whether any space has a shared mapping of `cache` that is or may become writable.
pub(in crate::mm) fn is_mapped_writable(cache: &PageCache) -> bool {
    let mut found = false;
    let wanted = VmFlags::SHARED.union(VmFlags::MAY_WRITE);
    registry::for_each(|space| {
        found = found
            || space.inner.lock().vmas.iter().paced().any(|vma| {
                vma.flags.contains(wanted)
                    && vma.file.as_ref().is_some_and(|file| core::ptr::eq(&*file.cache, cache))
            });
    });
    found
}
