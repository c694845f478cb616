//! Access to a space from outside: exec fills the space it builds, a debugger looks into another's.
//!
//! Owns nothing. Goes through the direct map, page by page; never dereferences a user address. Locks: the space's, which
//! keeps each frame while it is used.

use super::fault::map_cached;
use crate::base::PAGE_SIZE;
use crate::mm::frames::frame::Frame;
use crate::mm::frames::{self, Pfn};
use crate::mm::layout::{page_down, page_up};
use crate::mm::space::request::{Fault, FaultAccess, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::CpuMask;
use crate::mm::space::table::{ACCESSED, DIRTY, LEAF_SPAN, OWNED, WRITABLE, index_at};
use crate::sync::Pace;
use abi::{Errno, Result};
use alea_frames::Owner;
use core::ops::Range;

impl AddressSpace {
    /// Maps pages ahead: for `write`, private copies (or zero pages) are made at once; otherwise pages of
    /// files that are in their cache are mapped. Pages that are mapped already stay; holes are skipped.
    pub fn prefault(&self, range: Range<u64>, write: bool) -> Result<()> {
        let end = page_up(range.end).ok_or(Errno::EINVAL)?;
        let mut inner = self.inner.lock();
        let mut at = page_down(range.start);
        while let Some(pos) = inner.vmas.at_or_after(at) {
            let Some(vma) = inner.vmas.get(pos) else { break };
            let (low, high) = (vma.start.max(at), vma.end.min(end));
            if low >= high {
                break;
            }
            at = high;
            if write {
                for addr in (low..high).step_by(PAGE_SIZE).killable() {
                    let addr = addr?;
                    match inner.resolve(self, pos, addr, FaultAccess::Write, true) {
                        Ok(_) | Err(Fault::Bus | Fault::SegvAcc | Fault::SegvMap) => {}
                        Err(Fault::Oom | Fault::OomDroppable) => return Err(Errno::ENOMEM),
                    }
                }
            } else {
                inner.map_ahead(low, high, &self.cpus)?;
            }
        }
        Ok(())
    }

    /// Puts `frame` at `addr` of a private mapping where nothing is mapped yet (exec's stack and data):
    /// `EFAULT` without such a mapping, `EEXIST` if a page is there. Its only reference must be the caller's, or
    /// it would be shared: `EINVAL`.
    pub fn install(&self, addr: u64, frame: Frame) -> Result<()> {
        if frame.refcount() != 1 {
            return Err(Errno::EINVAL);
        }
        let addr = page_down(addr);
        let mut inner = self.inner.lock();
        let pos = inner.vmas.find(addr).ok_or(Errno::EFAULT)?;
        let vma = inner.vmas.get(pos).filter(|vma| vma.is_private()).ok_or(Errno::EFAULT)?;
        let mut flags = vma.entry_flags() | OWNED | ACCESSED;
        if vma.flags.contains(VmFlags::WRITE) {
            flags |= WRITABLE | DIRTY;
        }
        let leaf = inner.table.leaf_or_alloc(addr, &self.cpus)?;
        let index = index_at(addr, 0);
        if leaf.get(index) != 0 {
            return Err(Errno::EEXIST);
        }
        let frame = frame.into_raw();
        frames::change_owner(frame, Owner::Anon);
        leaf.set(index, frame.phys() | flags);
        inner.own(pos);
        Ok(())
    }

    /// Writes into a space that need not be active, protection ignored except on shared mappings; `EFAULT`
    /// where nothing is mapped.
    pub fn write_bytes(&self, addr: u64, src: &[u8]) -> Result<()> {
        self.write_pages(addr, src, Force::Protection)
    }

    /// The same where the mapping lets the program itself write.
    pub fn write_as_mapped(&self, addr: u64, src: &[u8]) -> Result<()> {
        self.write_pages(addr, src, Force::Nothing)
    }

    fn write_pages(&self, addr: u64, src: &[u8], force: Force) -> Result<()> {
        let (mut left, len) = (src, src.len() as u64);
        self.visit_pages(addr, len, FaultAccess::Write, force, &mut |frame, off, len| {
            let (now, later) = left.split_at(len);
            // SAFETY: the frame is mapped in this space, whose lock is held, so it is not freed; `off..off + len`
            // lies within the page.
            unsafe { core::ptr::copy_nonoverlapping(now.as_ptr(), frame.ptr().add(off), len) };
            left = later;
        })
    }

    /// Reads from a space that need not be active; the count before the first hole.
    pub fn read_bytes(&self, addr: u64, dst: &mut [u8]) -> usize {
        self.read_pages(addr, dst, Force::Protection)
    }

    /// The same where the mapping lets the program itself read.
    pub fn read_as_mapped(&self, addr: u64, dst: &mut [u8]) -> usize {
        self.read_pages(addr, dst, Force::Nothing)
    }

    fn read_pages(&self, addr: u64, dst: &mut [u8], force: Force) -> usize {
        let len = dst.len() as u64;
        let mut done = 0;
        let result =
            self.visit_pages(addr, len, FaultAccess::Read, force, &mut |frame, off, len| {
                // SAFETY: as in `write_bytes`.
                let page = unsafe { frame.ptr().add(off) };
                let to = &mut dst[done..done + len];
                // SAFETY: as above; `to` is kernel memory of that length.
                unsafe { core::ptr::copy_nonoverlapping(page, to.as_mut_ptr(), len) };
                done += len;
            });
        // A fault ends the read; the count tells how far it came.
        let _ = result;
        done
    }

    /// Zeros memory of a space that need not be active.
    pub fn zero(&self, addr: u64, len: u64) -> Result<()> {
        self.visit_pages(
            addr,
            len,
            FaultAccess::Write,
            Force::Protection,
            &mut |frame, off, len| {
                // SAFETY: as in `write_bytes`.
                unsafe { core::ptr::write_bytes(frame.ptr().add(off), 0, len) };
            },
        )
    }

    fn visit_pages(
        &self,
        addr: u64,
        len: u64,
        access: FaultAccess,
        force: Force,
        visit: &mut dyn FnMut(Pfn, usize, usize),
    ) -> Result<()> {
        let end = addr.checked_add(len).ok_or(Errno::EFAULT)?;
        let mut inner = self.inner.lock();
        let mut at = addr;
        while at < end {
            let page = page_down(at);
            let off = (at - page) as usize;
            let count = (PAGE_SIZE - off).min((end - at) as usize);
            let pos = inner.find_or_grow(at).map_err(|_| Errno::EFAULT)?;
            if inner.vmas.get(pos).is_some_and(|vma| vma.flags.contains(VmFlags::SECRET)) {
                return Err(Errno::EFAULT);
            }
            let force = force == Force::Protection;
            let frame =
                inner.resolve(self, pos, page, access, force).map_err(|fault| match fault {
                    Fault::Oom | Fault::OomDroppable => Errno::ENOMEM,
                    _ => Errno::EFAULT,
                })?;
            visit(frame, off, count);
            at += count as u64;
        }
        Ok(())
    }
}

/// What an access to another space's memory need not heed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    Nothing,
    /// The protection of a mapping, as a debugger.
    Protection,
}

impl Inner {
    /// Maps the cached pages of a part of one mapping.
    pub(in crate::mm::space) fn map_ahead(
        &mut self,
        low: u64,
        high: u64,
        cpus: &CpuMask,
    ) -> Result<()> {
        let Some(pos) = self.vmas.find(low) else { return Ok(()) };
        let mut mapped = 0;
        let mut at = low;
        while at < high {
            let upto = ((at & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(high);
            let Some(vma) = self.vmas.get(pos) else { break };
            let Some(file) = &vma.file else { return Ok(()) };
            if !vma.is_accessible() {
                return Ok(());
            }
            let leaf = self.table.leaf_or_alloc(at, cpus)?;
            mapped += map_cached(vma, &file.cache, leaf, at, upto);
            at = upto;
        }
        let flags = self.vmas.get(pos).map_or(VmFlags::empty(), |vma| vma.flags);
        self.count_rss(flags, false, mapped);
        Ok(())
    }
}
