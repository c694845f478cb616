//! fork: a copy-on-write copy.
//!
//! Copies the list of mappings and those page-table entries that are set. Private pages become read-only in
//! both spaces and get a second reference; borrowed ones are copied as they are. Page tables that are full of
//! private pages are not copied but shared until one of the two writes there ([`share`](super::share)). Pages that this program is
//! known to write soon after a fork are copied at once instead ([`HotPages`](super::hot::HotPages)). What a
//! big file mapping has borrowed is left out: the child finds it again through fault-around.

use super::share;
use super::table::{DIRTY, OWNED, PRESENT, PageTable, WRITABLE, ZERO, frame_of, index_at};
use super::tlb::Gather;
use super::vma::Vma;
use super::{AddressSpace, Inner, VmFlags};
use crate::mm::frames::{self, For};
use crate::mm::layout::PAGE_SIZE;
use abi::{Errno, Result};
use alea_frames::Owner;
use alea_ranges::RangeMap;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Mappings of files with more pages than this are not copied unless they have private pages.
const REFAULT_PAGES: u64 = 1024;

impl AddressSpace {
    /// A copy-on-write copy; `ENOMEM`.
    pub fn fork(&self) -> Result<Arc<Self>> {
        let mut inner = self.inner.lock();
        let vmas = inner.vmas.try_clone_with(inherited).map_err(|_| Errno::ENOMEM)?;
        let child = Self::with(vmas, inner.layout, inner.limits, self.hot.clone(), true)?;
        // Relaxed: the child does not run yet.
        child.membarrier.store(self.membarrier.load(Ordering::Relaxed), Ordering::Relaxed);
        {
            // Known to nobody but the registry, whose walk only waits for it: no order is needed here.
            let mut copy = child.inner.lock();
            copy.recount();
            self.share_tables(&mut inner, &mut copy)?;
            self.copy_hot(&mut inner, &mut copy)?;
            self.copy_entries(&mut inner, &mut copy)?;
        }
        Ok(child)
    }

    /// Lets the child have the page tables that are full of private pages until one of the two writes there.
    fn share_tables(&self, parent: &mut Inner, child: &mut Inner) -> Result<()> {
        let Inner { vmas, table, counts, .. } = child;
        let mut gather = Gather::new(&self.cpus);
        let large = |vma: &&Vma| vma.is_private_anon() && vma.pages() >= share::MIN_PAGES;
        for vma in vmas.iter().filter(large).filter(|vma| is_copied(vma)) {
            let mut at = vma.start;
            while let Some(part) = parent.table.next_leaf(at, vma.end) {
                at = part.addr_of(part.range.end);
                if part.is_worth_sharing() {
                    gather.everything();
                    counts.rss_anon += parent.table.share(table, &part)? as u64;
                }
            }
        }
        Ok(())
    }

    /// Copies the pages that are likely written soon, and maps those of files that are likely read.
    fn copy_hot(&self, parent: &mut Inner, child: &mut Inner) -> Result<()> {
        for addr in self.hot.iter() {
            if child.table.is_shared(addr) {
                self.hot.forget(addr);
                continue;
            }
            let Some(pos) = child.vmas.find(addr) else { continue };
            let Some(vma) = child.vmas.get(pos).filter(|vma| is_copied(vma)) else { continue };
            let entry = parent.table.get(addr);
            if entry == 0 && vma.is_private_anon() && vma.flags.contains(VmFlags::WRITE) {
                // The parent never touched it, but its children do.
                let flags = vma.entry_flags() | OWNED | WRITABLE;
                let leaf = child.table.leaf_or_alloc(addr, &self.cpus)?;
                let new = frames::alloc_zeroed(Owner::Anon, For::User).ok_or(Errno::ENOMEM)?;
                leaf.set(index_at(addr, 0), new.phys() | flags);
                child.count_rss(VmFlags::empty(), true, 1);
                continue;
            }
            if entry == 0 {
                // The parent gets it, and from there this child and the next.
                parent.map_ahead(addr, addr + PAGE_SIZE as u64, &self.cpus)?;
                self.hot.forget(addr);
                continue;
            }
            let wanted = OWNED | PRESENT;
            if entry & wanted != wanted || !vma.flags.contains(VmFlags::WRITE) {
                continue;
            }
            let old = frame_of(entry);
            if entry & WRITABLE == 0
                && old.meta().refs() == 1
                && let Some(leaf) = parent.table.leaf(addr)
            {
                // Nobody shares it any more, and it stays the parent's own.
                leaf.replace(index_at(addr, 0), entry | WRITABLE | DIRTY);
            }
            let flags = vma.entry_flags() | OWNED | WRITABLE;
            let leaf = child.table.leaf_or_alloc(addr, &self.cpus)?;
            let new = frames::alloc(Owner::Anon, For::User).ok_or(Errno::ENOMEM)?;
            new.copy_from(old);
            leaf.set(index_at(addr, 0), new.phys() | flags);
            child.count_rss(VmFlags::empty(), true, 1);
        }
        Ok(())
    }

    fn copy_entries(&self, parent: &mut Inner, child: &mut Inner) -> Result<()> {
        let Inner { vmas, table, .. } = child;
        let mut gather = Gather::new(&self.cpus);
        let mut anon = 0;
        // The child has the borrowed pages that the parent has, but for what is left out.
        let (mut file, mut shmem) = (parent.counts.rss_file, parent.counts.rss_shmem);
        let mut leave_out = |vma: &Vma, pages: u64| {
            let count = if vma.flags.contains(VmFlags::SHMEM) { &mut shmem } else { &mut file };
            *count = count.saturating_sub(pages);
        };
        for vma in parent.vmas.iter().filter(|vma| vma.file.is_some()) {
            if vma.flags.contains(VmFlags::DONTFORK) || !is_copied(vma) {
                leave_out(vma, borrowed(&parent.table, vma.start, vma.end));
            }
        }
        for vma in vmas.iter().filter(|vma| is_copied(vma)) {
            let mut at = vma.start;
            while let Some(mut part) = parent.table.next_leaf(at, vma.end) {
                at = part.addr_of(part.range.end);
                if part.table.is_empty(part.range.clone()) {
                    continue;
                }
                if table.is_shared(part.addr) {
                    if vma.file.is_some() {
                        leave_out(vma, borrowed(&parent.table, part.addr, at));
                    }
                    continue;
                }
                if part.shared {
                    // Its entries are about to be changed.
                    part.table = parent.table.leaf_or_alloc(part.addr, &self.cpus)?;
                }
                let to = table.leaf_or_alloc(part.addr, &self.cpus)?;
                part.table.for_each_group(part.range.clone(), |group| {
                    // What `copy_hot` has put there stays.
                    if group.is_plain() && !to.may_own(group.first) {
                        to.replace_group(group.first, &part.table.get_group(group.first));
                        return;
                    }
                    for index in group.first..group.end {
                        let mut entry = part.table.get(index);
                        if entry == 0 || to.get(index) != 0 {
                            continue;
                        }
                        if entry & OWNED != 0 {
                            frame_of(entry).meta().get();
                            anon += 1;
                            if entry & WRITABLE != 0 {
                                entry &= !WRITABLE;
                                part.table.replace(index, entry);
                                gather.changed(part.addr_of(index), entry);
                            }
                        }
                        to.replace(index, entry);
                    }
                });
                to.inherit_masks(part.table, part.range.clone());
            }
        }
        child.counts.rss_anon += anon;
        child.counts.rss_file += file;
        child.counts.rss_shmem += shmem;
        let counts = &mut child.counts;
        counts.rss_peak = counts.rss_anon + counts.rss_file + counts.rss_shmem;
        Ok(())
    }
}

/// How many pages of `start..end` are mapped and not the space's own.
fn borrowed(table: &PageTable, start: u64, end: u64) -> u64 {
    let mut pages = 0;
    table.for_each(start, end, |_, _, _, entry| {
        pages += u64::from(entry & (OWNED | ZERO) == 0);
    });
    pages
}

/// The child's copy of a mapping.
fn inherited(vma: &Vma) -> Option<Vma> {
    if vma.flags.contains(VmFlags::DONTFORK) {
        return None;
    }
    let mut copy = vma.duplicate();
    copy.flags.remove(VmFlags::LOCKED);
    Some(copy)
}

/// Whether the child gets the page-table entries of its mapping `vma`.
fn is_copied(vma: &Vma) -> bool {
    let wiped = VmFlags::WIPEONFORK.union(VmFlags::DROPPABLE);
    // Few children ask for the time before they execute something else.
    let often_unused = vma.flags.contains(VmFlags::SPECIAL) || vma.pages() > REFAULT_PAGES;
    !vma.flags.intersects(wiped)
        && (vma.file.is_none() || vma.flags.contains(VmFlags::HAS_ANON) || !often_unused)
}

impl Inner {
    /// Counts the mappings of a fresh copy.
    fn recount(&mut self) {
        let vmas = core::mem::replace(&mut self.vmas, RangeMap::new());
        for vma in vmas.iter() {
            self.account(vma.flags, vma.pages(), 1);
        }
        self.vmas = vmas;
    }
}
