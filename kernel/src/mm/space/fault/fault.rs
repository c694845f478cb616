//! Page faults: demand paging, copy-on-write, stack growth.
//!
//! `resolve` is the one way in, for the faults of programs and for the kernel's own accesses from outside (`direct`): it finds no
//! entry (`fill`), one that may not be written (`make_writable`), or a good one, if another thread was faster.
//!
//! Owns nothing. Never lets a program write to a page that another space or a page cache has too. Locks: the space's, then
//! those of the file's page cache.

use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::commit;
use crate::mm::frames::{self, For, Pfn, zero};
use crate::mm::layout::STACK_GUARD;
use crate::mm::layout::{PAGE_SHIFT, page_down};
use crate::mm::page_cache::{Lookup, PageCache};
use crate::mm::space::area::choose::lowest_chosen;
use crate::mm::space::huge::{self, Wanted};
use crate::mm::space::limits::limits;
use crate::mm::space::request::{Fault, FaultAccess, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::{Gather, Was};
use crate::mm::space::table::{
    ACCESSED, DIRTY, LEAF_SPAN, OWNED, PRESENT, Table, WRITABLE, ZERO, closed, frame_of, index_at,
    opened,
};
use crate::mm::space::vma::Vma;
use alea_frames::Owner;
use alea_ranges::Pos;

/// File pages that one fault maps, if they are in the cache.
const AROUND: u64 = 16 * PAGE_SIZE as u64;

impl AddressSpace {
    /// Mends a page fault.
    pub fn fault(&self, addr: u64, access: FaultAccess) -> Result<(), Fault> {
        if addr >= USER_END {
            return Err(Fault::SegvMap);
        }
        let mut inner = self.inner.lock();
        let pos = inner.find_or_grow(addr)?;
        match inner.resolve(self, pos, page_down(addr), access, false) {
            Ok(_) => Ok(()),
            Err(Fault::Oom) if inner.is_droppable(pos) => Err(Fault::OomDroppable),
            Err(fault) => Err(fault),
        }
    }
}

impl Inner {
    /// Remembers for the next fork of the program that a page of zeros was written soon after the fork that made
    /// this space.
    #[inline]
    fn note_early_write(&mut self, space: &AddressSpace, addr: u64) {
        if let Some(left) = self.early_writes.checked_sub(1) {
            self.early_writes = left;
            self.note_hot(&space.hot, addr);
        }
    }

    #[cold]
    fn is_droppable(&self, pos: Pos) -> bool {
        self.vmas.get(pos).is_some_and(|vma| vma.flags.contains(VmFlags::DROPPABLE))
    }

    /// The mapping that holds `addr`; a stack that can grow to it grows.
    pub(super) fn find_or_grow(&mut self, addr: u64) -> Result<Pos, Fault> {
        let pos = self.vmas.at_or_after(addr).ok_or(Fault::SegvMap)?;
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        if vma.start > addr {
            if !vma.flags.contains(VmFlags::GROWSDOWN) {
                return Err(Fault::SegvMap);
            }
            self.grow_stack(pos, page_down(addr))?;
        }
        Ok(pos)
    }

    #[cold]
    fn grow_stack(&mut self, pos: Pos, start: u64) -> Result<(), Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let (flags, pages) = (vma.flags, (vma.start - start) >> PAGE_SHIFT);
        let below = self.vmas.prev(pos).and_then(|below| self.vmas.get(below));
        let too_close = below.is_some_and(|below| {
            below.end > start
                || (start - below.end < STACK_GUARD
                    && below.is_accessible()
                    && !below.flags.contains(VmFlags::GROWSDOWN))
        });
        let limits = limits();
        let room = limits.address_space >> PAGE_SHIFT;
        if start < lowest_chosen()
            || vma.end - start > limits.stack
            || self.counts.size.saturating_add(pages) > room
            || too_close
        {
            return Err(Fault::SegvMap);
        }
        self.account(flags, pages, 1);
        if !commit::holds(self.counts.size) {
            self.account(flags, pages, -1);
            return Err(Fault::SegvMap);
        }
        self.vmas.update(pos, |vma| vma.start = start);
        Ok(())
    }

    /// Makes the page at `addr` (page-aligned, in the mapping at `pos`) accessible: its frame. With `force` the
    /// mapping's protection is ignored, as a debugger may: then only the frame counts, and a private page
    /// becomes the space's own for writing although the entry may stay read-only.
    #[inline]
    pub(in crate::mm::space) fn resolve(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        addr: u64,
        access: FaultAccess,
        force: bool,
    ) -> Result<Pfn, Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let write = access == FaultAccess::Write;
        let allowed = match access {
            FaultAccess::Read => vma.flags.intersects(VmFlags::ACCESS),
            FaultAccess::Write => vma.flags.contains(VmFlags::WRITE),
            FaultAccess::Exec => vma.flags.contains(VmFlags::EXEC),
        };
        // A debugger may write to private pages only, and not to what the program shares.
        if !allowed && !(force && (!write || vma.is_private())) {
            return Err(Fault::SegvAcc);
        }
        if !self.table.is_last(addr)
            && (self.table.large != 0 || huge::wanted() != Wanted::Never)
            && let Some(frame) = self.resolve_large(space, pos, addr, write && allowed)
        {
            return Ok(frame);
        }
        let leaf = self.table.leaf_or_alloc(addr, &space.cpus).map_err(|_| Fault::Oom)?;
        let index = index_at(addr, 0);
        let entry = leaf.get(index);
        if entry == 0 {
            return self.fill(space, pos, leaf, addr, write, allowed);
        }
        if write && entry & (WRITABLE | PRESENT) != (WRITABLE | PRESENT) {
            return self.make_writable(space, pos, leaf, addr, entry);
        }
        if entry & PRESENT == 0 && allowed {
            leaf.replace(index, opened(entry));
        }
        // Another thread was faster, or this CPU's TLB had an older entry.
        space.cpus.forget_here(addr);
        Ok(frame_of(entry))
    }

    /// Maps a page where nothing is mapped yet.
    fn fill(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        leaf: Table,
        addr: u64,
        write: bool,
        allowed: bool,
    ) -> Result<Pfn, Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let index = index_at(addr, 0);
        let mut flags = vma.entry_flags() | ACCESSED;
        if !allowed {
            flags = closed(flags);
        }
        if vma.file.is_some() && !(write && vma.is_private()) {
            return self.fill_borrowed(space, pos, leaf, addr, allowed);
        }
        if !write {
            // Anonymous memory that was never written: zeros, until it is.
            if !allowed {
                return Ok(zero::frame());
            }
            leaf.set(index, zero::frame().phys() | flags | ZERO);
            return Ok(zero::frame());
        }
        let frame = match &vma.file {
            None => frames::alloc_zeroed(Owner::Anon, For::User).ok_or(Fault::Oom)?,
            Some(file) => {
                let index = vma.index_of(addr);
                if let Some(footprint) = file.cache.footprint() {
                    footprint.write(index, true);
                }
                private_copy(&file.cache, index)?
            }
        };
        let is_zero = vma.file.is_none();
        if vma.flags.contains(VmFlags::WRITE) {
            flags |= WRITABLE | DIRTY;
        }
        leaf.set(index, frame.phys() | flags | OWNED);
        self.own(pos);
        if is_zero {
            self.note_fresh(space, pos, leaf, addr, flags);
        }
        Ok(frame)
    }

    /// A page of zeros of the mapping at `pos` was made, with `bits` in its entry, because it is written.
    #[inline]
    fn note_fresh(&mut self, space: &AddressSpace, pos: Pos, leaf: Table, addr: u64, bits: u64) {
        self.note_zero(addr);
        self.note_early_write(space, addr);
        self.fill_ahead(pos, leaf, addr, bits);
    }

    /// Maps the page of a file itself, and pages around it.
    #[inline]
    fn fill_borrowed(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        leaf: Table,
        addr: u64,
        allowed: bool,
    ) -> Result<Pfn, Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let file = vma.file.as_ref().ok_or(Fault::Bus)?;
        if vma.flags.contains(VmFlags::SPECIAL) {
            return self.fill_special(pos, leaf, addr);
        }
        let frame = match file.cache.lookup_or_alloc(vma.index_of(addr)) {
            Ok(Lookup::Page(frame)) => frame,
            Ok(Lookup::Beyond | Lookup::Hole) => return Err(Fault::Bus),
            Err(abi::Errno::ENOMEM) => return Err(Fault::Oom),
            Err(_) => return Err(Fault::Bus),
        };
        if !allowed {
            // Only read through the direct map: nothing needs to be mapped.
            return Ok(frame);
        }
        leaf.set(index_at(addr, 0), frame.phys() | vma.borrowed_flags() | ACCESSED);
        let mapped = match file.cache.footprint() {
            // Touched pages are recorded one by one, so that the next exec maps just those.
            Some(footprint) if vma.is_private() => {
                footprint.touch(vma.index_of(addr));
                if space.forked {
                    space.hot.remember(addr);
                }
                1
            }
            _ => 1 + around(vma, &file.cache, leaf, addr),
        };
        let flags = vma.flags;
        self.count_rss(flags, false, mapped);
        Ok(frame)
    }

    /// Notes that the mapping at `pos` has a private page more.
    pub(super) fn own(&mut self, pos: Pos) {
        if let Some(vma) = self.vmas.get_mut(pos) {
            vma.flags.insert(VmFlags::HAS_ANON);
        }
        self.count_rss(VmFlags::empty(), true, 1);
    }

    /// A write to a page that is mapped, but not writable: ours alone, or to be copied.
    fn make_writable(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        leaf: Table,
        addr: u64,
        entry: u64,
    ) -> Result<Pfn, Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let index = index_at(addr, 0);
        let old = frame_of(entry);
        let mut bits = vma.entry_flags() | ACCESSED | DIRTY;
        if vma.flags.contains(VmFlags::WRITE) {
            bits |= WRITABLE;
        } else if !vma.is_accessible() {
            bits = closed(bits);
        }
        // A CPU whose TLB has the old entry, which allows less of the same page, takes a fault (see `resolve`).
        if !vma.is_private() {
            leaf.replace(index, old.phys() | bits);
            space.cpus.forget_here(addr);
            return Ok(old);
        }
        // Nobody can take a reference to a frame that only this entry refers to, except through this space.
        if entry & OWNED != 0 && old.meta().refs() == 1 {
            leaf.replace(index, old.phys() | bits | OWNED);
            space.cpus.forget_here(addr);
            return Ok(old);
        }
        let mut gather = Gather::new(&space.cpus);
        gather.changed(addr, Was::used(entry));
        let new = if entry & ZERO != 0 {
            frames::alloc_zeroed(Owner::Anon, For::User).ok_or(Fault::Oom)?
        } else {
            let new = frames::alloc(Owner::Anon, For::User).ok_or(Fault::Oom)?;
            new.copy_from(old);
            new
        };
        if entry & OWNED != 0 {
            leaf.replace(index, new.phys() | bits | OWNED);
            self.note_hot(&space.hot, addr);
            gather.removed(addr, Was::used(entry));
            return Ok(new);
        }
        leaf.set(index, new.phys() | bits | OWNED);
        let flags = vma.flags;
        if entry & ZERO == 0 {
            if let Some(file) = &vma.file
                && let Some(footprint) = file.cache.footprint()
            {
                footprint.write(vma.index_of(addr), true);
            }
            self.count_rss(flags, false, -1);
            self.own(pos);
        } else {
            self.own(pos);
            self.note_fresh(space, pos, leaf, addr, bits);
        }
        Ok(new)
    }
}

/// Maps the pages around `addr` that are in the cache: how many.
fn around(vma: &Vma, cache: &PageCache, leaf: Table, addr: u64) -> i64 {
    let low = (addr & !(AROUND - 1)).max(vma.start);
    let high = ((addr & !(AROUND - 1)) + AROUND).min(vma.end);
    map_cached(vma, cache, leaf, low, high)
}

/// Maps the pages of `low..high` (in one leaf table) that are in the cache and not mapped yet: how many.
pub(super) fn map_cached(vma: &Vma, cache: &PageCache, leaf: Table, low: u64, high: u64) -> i64 {
    debug_assert!(low & !(LEAF_SPAN - 1) == (high - 1) & !(LEAF_SPAN - 1));
    let flags = vma.borrowed_flags();
    let first_index = vma.index_of(low);
    let first_slot = index_at(low, 0);
    let count = (high - low) >> PAGE_SHIFT;
    let mut mapped = 0;
    cache.runs(first_index..first_index + count, |index, slots| {
        let base = first_slot + (index - first_index) as usize;
        mapped += leaf.fill(base, slots, flags);
    });
    mapped
}

/// A private copy of a file's page.
pub(in crate::mm::space) fn private_copy(cache: &PageCache, index: u64) -> Result<Pfn, Fault> {
    // Looked up and copied under this space's lock, which keeps the page alive: see `PageCache`.
    match cache.lookup(index) {
        Lookup::Beyond => Err(Fault::Bus),
        Lookup::Hole => frames::alloc_zeroed(Owner::Anon, For::User).ok_or(Fault::Oom),
        Lookup::Page(page) => {
            let new = frames::alloc(Owner::Anon, For::User).ok_or(Fault::Oom)?;
            new.copy_from(page);
            Ok(new)
        }
    }
}
