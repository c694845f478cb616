//! mremap: a mapping grows, shrinks or moves; its pages move with it, none is copied.
//!
//! Owns nothing. Never leaves a page at both places: an entry is written at the new one after it was taken out at the old. Locks:
//! the space's.

use super::choose::{is_low, lowest_chosen};
use super::unmap::page_range;
use crate::base::PAGE_SIZE;
use crate::mm::commit::Promise;
use crate::mm::layout::{page_down, page_up};
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::index_at;
use crate::mm::space::table::tlb::{Gather, Was};
use crate::mm::space::vma::Vma;
use abi::{Errno, Result};

const MAYMOVE: u32 = 1;
const FIXED: u32 = 2;
const DONTUNMAP: u32 = 4;

/// A checked call.
struct Remap {
    old: u64,
    old_len: u64,
    new_len: u64,
    may_move: bool,
    dont_unmap: bool,
    /// The exact place wanted.
    fixed: Option<u64>,
    hint: Option<u64>,
    /// The caller may map the first pages.
    may_be_low: bool,
}

impl AddressSpace {
    /// mremap, with Linux's MREMAP_* flags; EPERM for a place among the first pages unless it `may_be_low`.
    pub fn remap(
        &self,
        old: u64,
        old_len: u64,
        new_len: u64,
        (flags, new): (u32, u64),
        may_be_low: bool,
    ) -> Result<u64> {
        let call = Remap::check(old, old_len, new_len, flags, new)?;
        let call = Remap { may_be_low, ..call };
        let mut inner = self.inner.lock();
        let addr = inner.remap(self, &call)?;
        let grown = call.new_len > call.old_len;
        let locked = inner.vmas.find(addr).and_then(|pos| inner.vmas.get(pos));
        if grown && locked.is_some_and(|vma| vma.flags.contains(VmFlags::LOCKED)) {
            // As on Linux, what cannot be populated is left to faults.
            let _ = inner.populate(self, addr + call.old_len, addr + call.new_len);
        }
        Ok(addr)
    }
}

impl Remap {
    fn check(old: u64, old_len: u64, new_len: u64, flags: u32, new: u64) -> Result<Self> {
        let (may_move, dont_unmap) = (flags & MAYMOVE != 0, flags & DONTUNMAP != 0);
        let is_fixed = flags & FIXED != 0;
        if flags & !(MAYMOVE | FIXED | DONTUNMAP) != 0
            || ((is_fixed || dont_unmap) && !may_move)
            || !old.is_multiple_of(PAGE_SIZE as u64)
        {
            return Err(Errno::EINVAL);
        }
        let old_len = page_up(old_len).ok_or(Errno::EINVAL)?;
        let new_len = page_up(new_len).filter(|&len| len > 0).ok_or(Errno::EINVAL)?;
        if dont_unmap && old_len != new_len {
            return Err(Errno::EINVAL);
        }
        page_range(old, old_len).ok_or(Errno::EINVAL)?;
        let mut fixed = None;
        if is_fixed {
            let to = page_range(new, new_len).ok_or(Errno::EINVAL)?;
            if to.start < old + old_len && old < to.end {
                return Err(Errno::EINVAL);
            }
            fixed = Some(new);
        }
        let hint = (dont_unmap && new != 0).then_some(new);
        Ok(Self { old, old_len, new_len, may_move, dont_unmap, fixed, hint, may_be_low: false })
    }
}

impl Inner {
    fn remap(&mut self, space: &AddressSpace, call: &Remap) -> Result<u64> {
        let &Remap { old, old_len, new_len, .. } = call;
        let pos = self.vmas.find(old).ok_or(Errno::EFAULT)?;
        let vma = self.vmas.get(pos).ok_or(Errno::EFAULT)?;
        if old_len == 0 && vma.is_private() {
            return Err(Errno::EINVAL);
        }
        if call.dont_unmap && !vma.is_private_anon() {
            return Err(Errno::EINVAL);
        }
        if call.fixed.is_none() && !call.dont_unmap && old_len >= new_len {
            // Shrinking in place may span several mappings.
            self.unmap_range(space, old + new_len, old + old_len)?;
            return Ok(old);
        }
        if old_len > vma.end - old {
            return Err(Errno::EFAULT);
        }
        let grows = new_len.saturating_sub(old_len);
        let (flags, is_end) = (vma.flags, old + old_len == vma.end);
        // Kept until the mapping itself is counted.
        let _promise = self.check_remap(vma, call, grows)?;
        if call.fixed.is_none() && !call.dont_unmap && old_len > 0 && is_end {
            let end = old.checked_add(new_len).ok_or(Errno::ENOMEM)?;
            if end <= crate::base::page::USER_END && self.fits(old + old_len, grows) {
                self.account(flags, grows >> crate::mm::layout::PAGE_SHIFT, 1);
                self.vmas.update(pos, |vma| vma.end = end);
                self.merge(end, end);
                return Ok(old);
            }
        }
        if !call.may_move {
            return Err(Errno::ENOMEM);
        }
        self.move_mapping(space, call)
    }

    fn check_remap(&self, vma: &Vma, call: &Remap, grows: u64) -> Result<Promise> {
        if grows > 0 && vma.flags.intersects(VmFlags::SPECIAL.union(VmFlags::WHOLE)) {
            return Err(Errno::EFAULT);
        }
        if vma.file.is_some() {
            let end = vma.offset_of(call.old).checked_add(call.new_len);
            if end.is_none_or(|end| end > i64::MAX as u64) {
                return Err(Errno::EINVAL);
            }
        }
        let more = if call.dont_unmap || call.old_len == 0 { call.new_len } else { grows };
        if more > 0 { self.check_room(vma.flags, 0, more, false) } else { Ok(Promise::NONE) }
    }

    /// Where the mapping shall go.
    fn choose_target(&mut self, call: &Remap) -> Result<u64> {
        // As on Linux, a low hint is not moved up, unlike mmap's.
        let hint = call.hint.map(page_down).filter(|&hint| hint < lowest_chosen());
        let low_hint = hint.filter(|&hint| self.fits(hint, call.new_len));
        match call.fixed.or(low_hint) {
            Some(to) if is_low(to) && !call.may_be_low => Err(Errno::EPERM),
            Some(to) => Ok(to),
            None => self.choose(call.hint, call.new_len),
        }
    }

    /// Makes the mapping anew elsewhere and moves its pages there.
    fn move_mapping(&mut self, space: &AddressSpace, call: &Remap) -> Result<u64> {
        let &Remap { old, old_len, new_len, .. } = call;
        let kept = old_len.min(new_len);
        let to = self.choose_target(call)?;
        if call.fixed.is_some() {
            self.unmap_range(space, to, to + new_len)?;
        }
        // The tail that is not moved goes; the head is split off, so that it can be taken out whole.
        self.unmap_range(space, old + kept, old + old_len.max(kept))?;
        let pos = self.vmas.find(old).ok_or(Errno::EFAULT)?;
        let vma = self.vmas.get(pos).ok_or(Errno::EFAULT)?;
        let mut copy = vma.duplicate();
        copy.offset = if vma.file.is_some() { vma.offset_of(old) } else { 0 };
        (copy.start, copy.end) = (to, to + new_len);
        let flags = vma.flags;
        // What stays mapped at the old place is locked no more.
        let is_unlocked = call.dont_unmap && flags.contains(VmFlags::LOCKED);
        // All that needs memory comes first: without it nothing has moved. Tables that were made already go with the space.
        if (!call.dont_unmap || is_unlocked) && kept > 0 {
            self.split_at(old)?;
            self.split_at(old + kept)?;
        }
        self.table.own_range(old, old + kept, &space.cpus)?;
        self.make_tables(space, old, to, kept)?;
        if is_unlocked {
            // Before the new mapping is there, which may be joined with what is locked beside it.
            self.set_flags_at(old, flags.difference(VmFlags::LOCKED));
        }
        if let Err(error) = self.insert(copy) {
            self.set_flags_at(old, flags);
            return Err(error);
        }
        self.move_entries(space, old, to, kept);
        if !call.dont_unmap && kept > 0 {
            self.unmap_range(space, old, old + kept)?;
        } else if is_unlocked {
            self.merge(old, old + kept);
        }
        Ok(to)
    }

    /// Sets the flags of the mapping that holds `addr`.
    fn set_flags_at(&mut self, addr: u64, flags: VmFlags) {
        if let Some(pos) = self.vmas.find(addr) {
            self.set_flags(pos, flags);
        }
    }

    /// Makes the tables that [`move_entries`](Self::move_entries) needs.
    fn make_tables(&mut self, space: &AddressSpace, from: u64, to: u64, len: u64) -> Result<()> {
        let mut at = from;
        while let Some(part) = self.table.next_leaf(at, from + len) {
            at = part.addr_of(part.range.end);
            let mut result = Ok(());
            part.table.for_each(part.range.clone(), |index, _| {
                if result.is_ok() {
                    let target = to + (part.addr_of(index) - from);
                    result = self.table.leaf_or_alloc(target, &space.cpus).map(drop);
                }
            });
            result?;
        }
        Ok(())
    }

    /// Moves page-table entries from `from..from + len` to `to`; the tables of both are there and the space's own.
    fn move_entries(&mut self, space: &AddressSpace, from: u64, to: u64, len: u64) {
        let mut gather = Gather::new(&space.cpus);
        let mut at = from;
        while let Some(part) = self.table.next_leaf(at, from + len) {
            at = part.addr_of(part.range.end);
            let table = &mut self.table;
            part.table.for_each(part.range.clone(), |index, entry| {
                let addr = part.addr_of(index);
                let target = to + (addr - from);
                // Never without: see `make_tables`.
                if let Ok(leaf) = table.leaf_or_alloc(target, &space.cpus) {
                    let was = Was::exchange(part.table.entry(index), entry, 0);
                    leaf.set(index_at(target, 0), was.entry());
                    gather.changed(addr, was);
                }
            });
        }
    }
}
