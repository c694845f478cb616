//! mprotect: other rights for a range, in the list of mappings and in the page-table entries that are there.
//!
//! Owns nothing. Never leaves an entry with a right that its mapping has lost: the TLBs are flushed before the lock is let go.
//! Locks: the space's.

use super::unmap::page_range;
use crate::mm::commit::Promise;
use crate::mm::layout::PAGE_SHIFT;
use crate::mm::space::limits::limits;
use crate::mm::space::request::{Prot, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::{Gather, Was};
use crate::mm::space::table::{ACCESSED, DIRTY, OWNED, WRITABLE, ZERO, closed, frame_of};
use crate::mm::space::vma::Vma;
use crate::sync::cond_resched;
use abi::{Errno, Result};
use alea_ranges::Pos;

impl AddressSpace {
    /// mprotect: `EINVAL` for a bad address, `ENOMEM` at the first hole (what lies below it is changed),
    /// `EACCES` for a right that the mapping cannot have.
    pub fn protect(&self, addr: u64, len: u64, prot: Prot) -> Result<()> {
        self.protect_as(addr, len, prot, false)
    }

    /// As [`protect`](Self::protect); with `also_exec` each mapping that may be executed gets that right too.
    pub fn protect_as(&self, addr: u64, len: u64, prot: Prot, also_exec: bool) -> Result<()> {
        let range = match page_range(addr, len) {
            Some(range) => range,
            None if addr.is_multiple_of(1 << PAGE_SHIFT) => return Err(Errno::ENOMEM),
            None => return Err(Errno::EINVAL),
        };
        let access = VmFlags::from_prot(prot);
        let mut inner = self.inner.lock();
        let mut gather = Gather::new(&self.cpus);
        let result = inner.protect_range(&mut gather, range.start, range.end, access, also_exec);
        inner.merge(range.start, range.end);
        result
    }
}

/// Whether it is anonymous memory of which no page was ever written: nothing has to be kept.
fn is_untouched(vma: &Vma) -> bool {
    vma.is_private_anon() && !vma.flags.contains(VmFlags::HAS_ANON)
}

impl Inner {
    fn protect_range(
        &mut self,
        gather: &mut Gather<'_>,
        start: u64,
        end: u64,
        access: VmFlags,
        also_exec: bool,
    ) -> Result<()> {
        let mut at = start;
        while at < end {
            cond_resched();
            let pos = self.vmas.find(at).ok_or(Errno::ENOMEM)?;
            let vma = self.vmas.get(pos).ok_or(Errno::ENOMEM)?;
            let upto = vma.end.min(end);
            let mut flags = vma.flags.difference(VmFlags::ACCESS) | access;
            if also_exec && flags.contains(VmFlags::MAY_EXEC) {
                flags.insert(VmFlags::EXEC);
            }
            if flags.is_promise() {
                flags.insert(VmFlags::PROMISED);
            } else if !flags.contains(VmFlags::WRITE) && is_untouched(vma) {
                flags.remove(VmFlags::PROMISED);
            }
            if flags != vma.flags {
                // Kept until the mapping itself is counted.
                let _promise = self.check_protect(vma, at, upto, flags)?;
                self.split_at(at)?;
                self.split_at(upto)?;
                self.table.own_range(at, upto, gather.cpus())?;
                let pos = self.vmas.find(at).ok_or(Errno::ENOMEM)?;
                self.set_flags(pos, flags);
                self.change_entries(gather, pos);
            }
            at = upto;
        }
        Ok(())
    }

    fn check_protect(&self, vma: &Vma, start: u64, end: u64, flags: VmFlags) -> Result<Promise> {
        let may = [
            (VmFlags::READ, VmFlags::MAY_READ),
            (VmFlags::WRITE, VmFlags::MAY_WRITE),
            (VmFlags::EXEC, VmFlags::MAY_EXEC),
        ];
        if may.iter().any(|&(right, may)| flags.contains(right) && !flags.contains(may)) {
            return Err(Errno::EACCES);
        }
        let becomes_data = flags.is_private_writable()
            && !vma.flags.is_private_writable()
            && !flags.contains(VmFlags::GROWSDOWN);
        let pages = (end - start) >> PAGE_SHIFT;
        if becomes_data && self.counts.data.saturating_add(pages) > limits().data >> PAGE_SHIFT {
            return Err(Errno::ENOMEM);
        }
        if flags.difference(vma.flags).contains(VmFlags::PROMISED) {
            return Promise::new(pages, self.counts.size);
        }
        Ok(Promise::NONE)
    }

    /// Sets a mapping's flags and keeps the counts true.
    pub(super) fn set_flags(&mut self, pos: Pos, flags: VmFlags) {
        let Some(vma) = self.vmas.get(pos) else { return };
        let (old, pages) = (vma.flags, vma.pages());
        self.account(old, pages, -1);
        self.account(flags, pages, 1);
        self.vmas.update(pos, |vma| vma.flags = flags);
    }

    /// Makes the page-table entries of the mapping at `pos` obey its flags.
    fn change_entries(&mut self, gather: &mut Gather<'_>, pos: Pos) {
        let Some(vma) = self.vmas.get(pos) else { return };
        let (flags, writable) = (vma.flags, vma.flags.contains(VmFlags::WRITE));
        let mut dropped = 0i64;
        self.table.for_each(vma.start, vma.end, |leaf, index, addr, entry| {
            let kept = entry & (ACCESSED | DIRTY | OWNED | ZERO);
            let frame = frame_of(entry);
            let new = if entry & OWNED == 0 {
                if !vma.is_accessible() {
                    dropped += i64::from(entry & ZERO == 0);
                    0
                } else if entry & ZERO != 0 {
                    frame.phys() | vma.entry_flags() | kept
                } else {
                    frame.phys() | vma.borrowed_flags() | kept
                }
            } else if !vma.is_accessible() {
                frame.phys() | closed(vma.entry_flags()) | kept
            } else if writable && frame.meta().refs() == 1 {
                // Ours alone: written without a fault. Dirty, or teardown would take it for a wasted copy.
                frame.phys() | vma.entry_flags() | kept | WRITABLE | DIRTY
            } else {
                frame.phys() | vma.entry_flags() | kept
            };
            if new != entry {
                gather.changed(addr, Was::exchange(leaf.entry(index), entry, new));
            }
        });
        self.count_rss(flags, false, -dropped);
    }
}
