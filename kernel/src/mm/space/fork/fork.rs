//! fork: a copy-on-write copy.
//!
//! Copies the list of mappings and those page-table entries that are set. Private pages become read-only in
//! both spaces and get a second reference; borrowed ones are copied as they are. Page tables that are full of
//! private pages are not copied but shared until one of the two writes there ([`share`]). Pages that this program
//! is known to write soon after a fork are copied at once instead ([`HotPages`](crate::mm::space::hot::HotPages)). What a big file mapping has borrowed
//! is left out: the child finds it again through fault-around.
//!
//! Owns nothing. Never leaves a private page writable in one of the two spaces while both have it. Locks: the parent's space, then the
//! child's, which nobody else knows yet.

use crate::base::PAGE_SIZE;
use crate::mm::commit;
use crate::mm::frames::{self, For};
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Counts, Inner};
use crate::mm::space::table::tlb::{CpuMask, Gather, Was};
use crate::mm::space::table::{
    DIRTY, GROUP_SPAN, Group, LEAF_SPAN, LeafPart, NO_LEAF, OWNED, PRESENT, PageTable, Table,
    WRITABLE, ZERO, bits, frame_of, index_at, share,
};
use crate::mm::space::vma::Vma;
use crate::sync::{Pace, cond_resched};
use abi::{Errno, Result};
use alea_frames::Owner;
use alea_ranges::RangeMap;
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Mappings of files with more pages than this are not copied unless they have private pages.
const REFAULT_PAGES: u64 = 1024;

impl AddressSpace {
    /// A copy-on-write copy; `ENOMEM`.
    pub fn fork(&self) -> Result<Arc<Self>> {
        let mut inner = self.inner.lock();
        if self.hot.is_first() {
            inner.recall_hot(&self.hot);
        }
        let vmas = inner.vmas.try_clone_with(inherited).map_err(|_| Errno::ENOMEM)?;
        let child = Self::with(vmas, inner.layout, self.hot.clone(), true)?;
        // Relaxed: the child does not run yet.
        child.allow_large(self.allows_large());
        child.membarrier.store(self.membarrier.load(Ordering::Relaxed), Ordering::Relaxed);
        {
            // Known to nobody but the registry, whose walk only waits for it: no order is needed here.
            let mut copy = child.inner.lock();
            copy.inherit_counts(&inner);
            copy.check_promises()?;
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
        for vma in vmas.iter().paced().filter(large).filter(|vma| is_copied(vma)) {
            let mut at = vma.start;
            while let Some(part) = parent.table.next_leaf(at, vma.end) {
                at = part.addr_of(part.range.end);
                if part.is_worth_sharing() {
                    gather.everything();
                    counts.rss_anon += parent.table.share(table, &part, &self.cpus)? as u64;
                }
            }
        }
        Ok(())
    }

    /// Copies the pages that are likely written soon, and maps those of files that are likely read. The record may name
    /// a page twice, which is copied once.
    fn copy_hot(&self, parent: &mut Inner, child: &mut Inner) -> Result<()> {
        let mut made = 0u64;
        // The parent's leaf table that was looked at last, and which 2 MiB it maps.
        let mut seen = (NO_LEAF, None);
        for addr in self.hot.iter() {
            if child.table.is_shared(addr) {
                self.hot.forget(addr);
                continue;
            }
            let Some(vma) = child.vmas.at(addr).filter(|vma| is_copied(vma)) else { continue };
            if seen.0 != addr / LEAF_SPAN {
                seen = (addr / LEAF_SPAN, parent.table.leaf(addr));
            }
            let index = index_at(addr, 0);
            let entry = seen.1.map_or(0, |leaf| leaf.get(index));
            if entry == 0 && vma.is_private_anon() && vma.flags.contains(VmFlags::WRITE) {
                // The parent never touched it, but its children do.
                let flags = vma.entry_flags() | OWNED | WRITABLE;
                let leaf = child.table.leaf_or_alloc(addr, &self.cpus)?;
                if leaf.get(index) == 0 {
                    let new = frames::alloc_zeroed(Owner::Anon, For::User).ok_or(Errno::ENOMEM)?;
                    leaf.set(index, new.phys() | flags);
                    made += 1;
                }
                continue;
            }
            if entry == 0 {
                // The parent gets it, and from there this child and the next.
                parent.map_ahead(addr, addr + PAGE_SIZE as u64, &self.cpus)?;
                self.hot.forget(addr);
                seen.0 = NO_LEAF;
                continue;
            }
            let wanted = OWNED | PRESENT;
            if entry & wanted != wanted || !vma.flags.contains(VmFlags::WRITE) {
                continue;
            }
            let old = frame_of(entry);
            if entry & WRITABLE == 0
                && old.meta().refs() == 1
                && !parent.table.is_shared(addr)
                && let Some(leaf) = seen.1
            {
                // Nobody shares it any more, and it stays the parent's own.
                leaf.replace(index, entry | WRITABLE | DIRTY);
            }
            let flags = vma.entry_flags() | OWNED | WRITABLE;
            let leaf = child.table.leaf_or_alloc(addr, &self.cpus)?;
            if leaf.get(index) == 0 {
                let new = frames::alloc(Owner::Anon, For::User).ok_or(Errno::ENOMEM)?;
                new.copy_from(old);
                leaf.set(index, new.phys() | flags);
                made += 1;
            }
        }
        child.counts.rss_anon += made;
        Ok(())
    }

    fn copy_entries(&self, parent: &mut Inner, child: &mut Inner) -> Result<()> {
        let Inner { vmas, table: from, counts, .. } = parent;
        // The child has the borrowed pages that the parent has, but for what is left out.
        let (mut file, mut shmem) =
            (counts.rss_file.saturating_sub(counts.rss_special), counts.rss_shmem);
        let mut special = 0;
        let (to, gather) = (&mut child.table, Gather::new(&self.cpus));
        let mut copying = Copying { cpus: &self.cpus, from, to, gather, owned: 0 };
        // Mappings that lie close to each other are copied as one: between them is nothing. Nor is there anything just
        // before or behind them but what is left out: whole groups of entries are copied faster.
        let mut run = 0..0u64;
        let mut left_out = 0;
        for vma in vmas.iter().paced() {
            let is_special = vma.flags.contains(VmFlags::SPECIAL);
            if vma.flags.contains(VmFlags::DONTFORK) || !is_copied(vma) {
                run.end = run.end.next_multiple_of(GROUP_SPAN).min(vma.start);
                copying.copy(core::mem::replace(&mut run, 0..0))?;
                left_out = vma.end;
                if vma.file.is_some() && !is_special {
                    let shared = vma.flags.contains(VmFlags::SHMEM);
                    let count = if shared { &mut shmem } else { &mut file };
                    *count = count.saturating_sub(borrowed(copying.from, vma.start, vma.end));
                }
                continue;
            }
            if is_special {
                special += borrowed(copying.from, vma.start, vma.end);
            }
            if !run.is_empty() && vma.start.wrapping_sub(run.end) < LEAF_SPAN {
                run.end = vma.end;
            } else {
                run.end = run.end.next_multiple_of(GROUP_SPAN);
                let start = (vma.start & !(GROUP_SPAN - 1)).max(left_out);
                copying.copy(core::mem::replace(&mut run, start..vma.end))?;
            }
        }
        run.end = run.end.next_multiple_of(GROUP_SPAN);
        copying.copy(run)?;
        let owned = copying.owned;
        let counts = &mut child.counts;
        counts.rss_anon += owned;
        counts.rss_file += file + special;
        counts.rss_special += special;
        counts.rss_shmem += shmem;
        counts.rss_peak = counts.rss_anon + counts.rss_file + counts.rss_shmem;
        Ok(())
    }
}

/// The copying of page-table entries from parent to child.
struct Copying<'a> {
    cpus: &'a CpuMask,
    from: &'a mut PageTable,
    to: &'a mut PageTable,
    gather: Gather<'a>,
    /// Private pages that got a second reference.
    owned: u64,
}

impl Copying<'_> {
    /// Copies the entries of `run`, but for what the child has already.
    fn copy(&mut self, run: Range<u64>) -> Result<()> {
        let mut at = run.start;
        while let Some(mut part) = self.from.next_leaf(at, run.end) {
            at = part.addr_of(part.range.end);
            if part.table.is_empty(part.range.clone()) || self.to.is_shared(part.addr) {
                continue;
            }
            if !part.is_own() {
                // Its entries are about to be changed.
                part.table = self.from.leaf_or_alloc(part.addr, self.cpus)?;
            }
            let to = self.to.leaf_or_alloc(part.addr, self.cpus)?;
            // What `copy_hot` has put there stays.
            let plan = part.table.plan_copy(part.range.clone(), to);
            for group in bits(plan.plain) {
                to.copy_group(group * 8, part.table);
            }
            for group in bits(plan.owning) {
                self.copy_owning(&part, to, group * 8);
            }
            part.table.for_each_of(plan.others, part.range.clone(), |group| {
                self.copy_one_by_one(&part, to, group);
            });
            to.inherit_masks(part.table, part.range.clone());
        }
        Ok(())
    }

    /// Copies the group of entry `first`, of which the child has nothing.
    #[inline]
    fn copy_owning(&mut self, part: &LeafPart, to: Table, first: usize) {
        let mut index = first;
        for (slot, place) in part.table.group(first).iter().zip(to.group(first)) {
            let mut entry = slot.load(Ordering::Relaxed);
            if entry & OWNED != 0 {
                entry = self.share(part, index, slot, entry);
            }
            place.store(entry, Ordering::Relaxed);
            index = index.wrapping_add(1);
        }
    }

    /// Copies the entries of a group that the child has not.
    fn copy_one_by_one(&mut self, part: &LeafPart, to: Table, group: Group) {
        for (index, slot) in part.table.slots(&group) {
            let mut entry = slot.load(Ordering::Relaxed);
            if entry == 0 || to.get(index) != 0 {
                continue;
            }
            if entry & OWNED != 0 {
                entry = self.share(part, index, slot, entry);
            }
            to.replace(index, entry);
        }
    }

    /// A second reference to an owned page, which neither may write any more: the entry of both.
    #[inline(always)]
    fn share(&mut self, part: &LeafPart, index: usize, slot: &AtomicU64, entry: u64) -> u64 {
        frame_of(entry).meta().get();
        self.owned = self.owned.wrapping_add(1);
        if entry & WRITABLE == 0 {
            return entry;
        }
        let was = Was::exchange(slot, entry, entry & !WRITABLE);
        self.gather.changed(part.addr_of(index), was);
        entry & !WRITABLE
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
    cond_resched();
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
    /// Counts the mappings of a fresh copy of `parent`'s.
    fn inherit_counts(&mut self, parent: &Self) {
        if self.vmas.len() != parent.vmas.len() {
            return self.recount();
        }
        let Counts { size, data, stack, text, promised, .. } = parent.counts;
        commit::count(promised.cast_signed());
        self.counts = Counts { size, peak: size, data, stack, text, promised, ..self.counts };
    }

    /// Whether what a child was promised may stand, as if each mapping had been asked for.
    fn check_promises(&self) -> Result<()> {
        let promised = |vma: &&Vma| vma.flags.contains(VmFlags::PROMISED);
        let has_hopeless = |vmas: &RangeMap<Vma>| {
            vmas.iter().paced().filter(promised).any(|vma| commit::is_hopeless(vma.pages()))
        };
        let hopeless = commit::is_hopeless(self.counts.promised) && has_hopeless(&self.vmas);
        if hopeless || !commit::holds(self.counts.size) { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    fn recount(&mut self) {
        let vmas = core::mem::replace(&mut self.vmas, RangeMap::new());
        for vma in vmas.iter().paced() {
            self.account(vma.flags, vma.pages(), 1);
        }
        self.vmas = vmas;
    }
}
