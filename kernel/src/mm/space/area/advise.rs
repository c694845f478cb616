//! madvise, mlock, msync, mincore: what a program says of memory that it has mapped, or asks about it.
//!
//! Owns nothing. Never holds the space's lock while part of a file is taken out (MADV_REMOVE): the file takes its pages out of all
//! mappings, and locks each space for that. Locks: the space's, taken anew for each mapping by madvise, held to the end by the others.

use super::unmap::page_range;
use crate::base::PAGE_SIZE;
use crate::mm::layout::PAGE_SHIFT;
use crate::mm::space::request::{Advice, Fault, FaultAccess, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::Gather;
use crate::mm::space::vma::Vma;
use crate::sync::{cond_resched, killable};
use abi::{Errno, Result};
use alea_ranges::Pos;
use alloc::sync::Arc;

/// A file range that madvise takes out of the file.
type Punch = (Arc<crate::mm::space::vma::MappedFile>, core::ops::Range<u64>);

impl AddressSpace {
    /// madvise. Holes give `ENOMEM` after the rest was done, as on Linux.
    pub fn advise(&self, addr: u64, len: u64, advice: Advice) -> Result<()> {
        let range = page_range(addr, len).ok_or(Errno::EINVAL)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut at = range.start;
        let mut hole = false;
        while at < range.end {
            killable()?;
            // The lock is taken anew for each mapping: what Remove does takes it again inside.
            let mut inner = self.inner.lock();
            let Some(pos) = inner.vmas.at_or_after(at) else {
                hole = true;
                break;
            };
            let Some(vma) = inner.vmas.get(pos) else { break };
            if vma.start >= range.end {
                hole = true;
                break;
            }
            hole |= vma.start > at;
            let (start, end) = (vma.start.max(at), vma.end.min(range.end));
            at = end;
            if let Some((file, bytes)) = inner.advise(self, pos, start, end, advice)? {
                drop(inner);
                file.source.punch(bytes)?;
            }
        }
        if hole { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// msync: nothing is ever dirty against a device; only checks. `ENOMEM` for a hole, `EBUSY` when
    /// `invalidate` meets a locked mapping, `EINVAL` when `sync` meets one of a file that cannot be written back.
    pub fn msync(&self, addr: u64, len: u64, invalidate: bool, sync: bool) -> Result<()> {
        let range = page_range(addr, len).ok_or(Errno::ENOMEM)?;
        let inner = self.inner.lock();
        inner.for_each_part(range.start, range.end, |vma, _, _| {
            if invalidate && vma.flags.contains(VmFlags::LOCKED) {
                Err(Errno::EBUSY)
            } else if sync && vma.flags.contains(VmFlags::SECRET) {
                Err(Errno::EINVAL)
            } else {
                Ok(())
            }
        })
    }

    /// mlock (`lock`) and munlock; `on_fault` leaves populating to faults, `limit` is RLIMIT_MEMLOCK or more.
    pub fn mlock(&self, addr: u64, len: u64, lock: bool, on_fault: bool, limit: u64) -> Result<()> {
        let start = crate::mm::layout::page_down(addr);
        let len = len.checked_add(addr - start).ok_or(Errno::EINVAL)?;
        let range = page_range(start, len).ok_or(Errno::EINVAL)?;
        let mut inner = self.inner.lock();
        if lock {
            let more = (range.end - range.start) >> PAGE_SHIFT;
            let most = limit >> PAGE_SHIFT;
            let all = inner.counts.locked.saturating_add(more);
            // What is locked already is counted once.
            if all > most && all - inner.locked_in(range.start, range.end) > most {
                return Err(Errno::ENOMEM);
            }
        }
        let result = inner.set_locked(range.start, range.end, lock);
        inner.merge(range.start, range.end);
        result?;
        if lock && !on_fault { inner.populate(self, range.start, range.end) } else { Ok(()) }
    }

    /// mlockall: `current` locks what is mapped, `future` what will be. munlockall: neither.
    pub fn mlock_all(&self, current: bool, future: bool, on_fault: bool, limit: u64) -> Result<()> {
        let mut inner = self.inner.lock();
        if current && inner.counts.size > limit >> PAGE_SHIFT {
            return Err(Errno::ENOMEM);
        }
        inner.lock_future = future;
        let mut next = inner.vmas.first();
        while let Some((pos, vma)) = next.and_then(|pos| Some((pos, inner.vmas.get(pos)?))) {
            cond_resched();
            let (start, end, mut flags) = (vma.start, vma.end, vma.flags);
            if (current || !future) && !flags.contains(VmFlags::SECRET) {
                flags.set(VmFlags::LOCKED, current && vma.can_be_locked());
                inner.set_flags(pos, flags);
            }
            if current && !on_fault {
                // As on Linux, what cannot be populated is left to faults.
                let _ = inner.populate(self, start, end);
            }
            next = inner.vmas.at_or_after(end);
        }
        Ok(())
    }

    /// mincore: one byte of `out` for each page from `addr` on; `ENOMEM` for a hole. What has no page table costs
    /// nothing.
    pub fn mincore(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        let range = page_range(addr, out.len() as u64 * PAGE_SIZE as u64).ok_or(Errno::ENOMEM)?;
        out.fill(0);
        let inner = self.inner.lock();
        inner.for_each_part(range.start, range.end, |vma, start, end| {
            let mut mark = |addr: u64| {
                if let Some(byte) = out.get_mut(((addr - range.start) >> PAGE_SHIFT) as usize) {
                    *byte = 1;
                }
            };
            inner.table.for_each(start, end, |_, _, addr, entry| {
                // What may not be touched (PROT_NONE) is there all the same.
                if entry != 0 {
                    mark(addr);
                }
            });
            if let Some(file) = &vma.file {
                let first = vma.index_of(start);
                let count = (end - start) >> PAGE_SHIFT;
                file.cache.runs(first..first + count, |index, slots| {
                    let there = (index..).zip(slots).filter(|&(_, &frame)| frame != 0);
                    there.for_each(|(index, _)| mark(start + ((index - first) << PAGE_SHIFT)));
                });
            }
            Ok(())
        })
    }
}

impl Inner {
    /// Visits the mappings in `start..end` with the part of each; `ENOMEM` at the first hole.
    fn for_each_part(
        &self,
        start: u64,
        end: u64,
        mut visit: impl FnMut(&Vma, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut at = start;
        while at < end {
            cond_resched();
            let vma = self.vmas.find(at).and_then(|pos| self.vmas.get(pos)).ok_or(Errno::ENOMEM)?;
            let upto = vma.end.min(end);
            visit(vma, at, upto)?;
            at = upto;
        }
        Ok(())
    }

    /// Does what is advised to `start..end` of the mapping at `pos`.
    fn advise(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        start: u64,
        end: u64,
        advice: Advice,
    ) -> Result<Option<Punch>> {
        let vma = self.vmas.get(pos).ok_or(Errno::ENOMEM)?;
        match advice {
            Advice::Nothing | Advice::WillNeed => {}
            // There is nowhere to page out to.
            Advice::PageOut if vma.can_be_discarded(Advice::DontNeed) => {}
            Advice::DontNeed | Advice::DontNeedLocked | Advice::Free => {
                if !vma.can_be_discarded(advice) {
                    return Err(Errno::EINVAL);
                }
                let flags = vma.flags;
                self.own_edges(start, end, &space.cpus)?;
                let mut gather = Gather::new(&space.cpus);
                self.zap(&mut gather, flags, start..end, true);
            }
            Advice::Remove => {
                let locked = vma.flags.contains(VmFlags::LOCKED);
                let Some(file) = vma.file.as_ref().filter(|_| !locked) else {
                    return Err(Errno::EINVAL);
                };
                if !vma.flags.contains(VmFlags::SHARED.union(VmFlags::MAY_WRITE)) {
                    return Err(Errno::EACCES);
                }
                return Ok(Some((file.shared().clone(), vma.offset_of(start)..vma.offset_of(end))));
            }
            Advice::Collapse => self.collapse_range(space, pos, start, end)?,
            Advice::PopulateRead => self.fault_in(space, start, end, FaultAccess::Read)?,
            Advice::PopulateWrite => self.fault_in(space, start, end, FaultAccess::Write)?,
            _ => {
                let flags = vma.flags_advised(advice)?;
                if flags != vma.flags {
                    self.split_at(start)?;
                    self.split_at(end)?;
                    let pos = self.vmas.find(start).ok_or(Errno::ENOMEM)?;
                    self.set_flags(pos, flags);
                    self.merge(start, end);
                }
            }
        }
        Ok(None)
    }

    /// MADV_POPULATE_READ and MADV_POPULATE_WRITE of `start..end`, in one mapping.
    fn fault_in(
        &mut self,
        space: &AddressSpace,
        start: u64,
        end: u64,
        access: FaultAccess,
    ) -> Result<()> {
        let vma = self.vmas.find(start).and_then(|pos| self.vmas.get(pos));
        if vma.is_some_and(|vma| vma.flags.contains(VmFlags::SECRET)) {
            // Only who touches them himself has such pages made.
            return Err(Errno::EINVAL);
        }
        self.touch(space, start, end, access, |fault| match fault {
            Fault::SegvMap | Fault::Oom | Fault::OomDroppable => Errno::ENOMEM,
            Fault::SegvAcc => Errno::EINVAL,
            Fault::Bus => Errno::EFAULT,
        })
    }

    /// How many pages of `start..end` are locked.
    fn locked_in(&self, start: u64, end: u64) -> u64 {
        let (mut pages, mut at) = (0, start);
        while let Some(vma) = self.vmas.at_or_after(at).and_then(|pos| self.vmas.get(pos))
            && vma.start < end
        {
            cond_resched();
            let within = vma.end.min(end) - vma.start.max(start);
            pages += if vma.flags.contains(VmFlags::LOCKED) { within >> PAGE_SHIFT } else { 0 };
            at = vma.end;
        }
        pages
    }

    fn set_locked(&mut self, start: u64, end: u64, lock: bool) -> Result<()> {
        let mut at = start;
        while at < end {
            cond_resched();
            let pos = self.vmas.find(at).ok_or(Errno::ENOMEM)?;
            let vma = self.vmas.get(pos).ok_or(Errno::ENOMEM)?;
            let (upto, mut flags) = (vma.end.min(end), vma.flags);
            // What is secret stays as it is: locked, as long as it is not a child's.
            if !flags.contains(VmFlags::SECRET) {
                flags.set(VmFlags::LOCKED, lock && vma.can_be_locked());
            }
            if flags != vma.flags {
                self.split_at(at)?;
                self.split_at(upto)?;
                let pos = self.vmas.find(at).ok_or(Errno::ENOMEM)?;
                self.set_flags(pos, flags);
            }
            at = upto;
        }
        Ok(())
    }

    /// Faults all pages of `start..end` in, for writing where a write would make a private copy. `ENOMEM` for a
    /// hole or a page that cannot be had.
    pub(super) fn populate(&mut self, space: &AddressSpace, start: u64, end: u64) -> Result<()> {
        let mut at = start;
        while at < end {
            let vma = self.vmas.find(at).and_then(|pos| self.vmas.get(pos)).ok_or(Errno::ENOMEM)?;
            let upto = vma.end.min(end);
            if vma.flags.contains(VmFlags::SECRET) {
                // Only who touches them himself has such pages made.
                return Err(Errno::ENOMEM);
            }
            let access = if vma.flags.is_private_writable() {
                FaultAccess::Write
            } else if vma.flags.intersects(VmFlags::READ.union(VmFlags::WRITE)) {
                FaultAccess::Read
            } else if vma.is_accessible() {
                FaultAccess::Exec
            } else {
                return Err(Errno::ENOMEM);
            };
            self.touch(space, at, upto, access, |_| Errno::ENOMEM)?;
            at = upto;
        }
        Ok(())
    }

    /// Does to `start..end` what accesses of a program would; `why` says what a fault that cannot be mended gives.
    fn touch(
        &mut self,
        space: &AddressSpace,
        start: u64,
        end: u64,
        access: FaultAccess,
        why: impl Fn(Fault) -> Errno,
    ) -> Result<()> {
        let mut addr = start;
        while addr < end {
            killable()?;
            let pos = self.vmas.find(addr).ok_or_else(|| why(Fault::SegvMap))?;
            self.resolve(space, pos, addr, access, false).map_err(&why)?;
            addr = self.table.page_end(addr);
        }
        Ok(())
    }
}

impl Vma {
    fn can_be_discarded(&self, advice: Advice) -> bool {
        match advice {
            Advice::DontNeedLocked => !self.is_kernel_data(),
            Advice::Free if !self.is_private_anon() => false,
            _ => !self.is_kernel_data() && !self.flags.contains(VmFlags::LOCKED),
        }
    }

    /// The flags that it has after advice that only changes flags; EINVAL for a mapping that cannot have them.
    fn flags_advised(&self, advice: Advice) -> Result<VmFlags> {
        let droppable = self.flags.contains(VmFlags::DROPPABLE);
        let (set, clear) = match advice {
            Advice::DontFork => (VmFlags::DONTFORK, VmFlags::empty()),
            Advice::DoFork => (VmFlags::empty(), VmFlags::DONTFORK),
            Advice::WipeOnFork if self.is_private_anon() => (VmFlags::WIPEONFORK, VmFlags::empty()),
            Advice::KeepOnFork if !droppable => (VmFlags::empty(), VmFlags::WIPEONFORK),
            Advice::DontDump => (VmFlags::DONTDUMP, VmFlags::empty()),
            Advice::Huge => (VmFlags::HUGE, VmFlags::NOHUGE),
            Advice::NoHuge => (VmFlags::NOHUGE, VmFlags::HUGE),
            Advice::DoDump if !droppable => (VmFlags::empty(), VmFlags::DONTDUMP),
            _ => return Err(Errno::EINVAL),
        };
        Ok((self.flags | set).difference(clear))
    }
}
