//! What /proc shows of a space, and what a shared futex is known by.
//!
//! Owns nothing. Never changes the space. Locks: the space's, also while the caller's function looks at a mapping.

use super::request::{VmFlags, VmUsage, VmaInfo};
use super::space::{AddressSpace, Inner};
use super::table::{LeafState, OWNED};
use super::vma::Vma;
use crate::base::page::USER_END;
use crate::mm::fallible::try_string;
use crate::sync::{Pace, cond_resched};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;

impl AddressSpace {
    /// What a shared futex at `addr` is known by: a number for the shared object that is mapped there and the
    /// offset in it; `None` for private memory.
    pub fn shared_object_at(&self, addr: u64) -> Result<Option<(u64, u64)>> {
        let inner = self.inner.lock();
        let vma = inner.vmas.find(addr).and_then(|pos| inner.vmas.get(pos));
        let Some((vma, file)) = vma.and_then(|vma| Some((vma, vma.file.as_ref()?))) else {
            return Ok(None);
        };
        if vma.flags.contains(VmFlags::SECRET) {
            return Err(Errno::EFAULT);
        }
        let place = (Arc::as_ptr(&file.cache) as u64, vma.offset_of(addr));
        Ok(Some(place).filter(|_| !vma.is_private()))
    }

    /// `EFAULT` if memfd_secret made any of `start..start + len`.
    pub fn check_shown(&self, start: u64, len: u64) -> Result<()> {
        let inner = self.inner.lock();
        let end = start.saturating_add(len);
        let mut at = start;
        while let Some(vma) = inner.vmas.at_or_after(at).and_then(|pos| inner.vmas.get(pos))
            && vma.start < end
        {
            cond_resched();
            if vma.flags.contains(VmFlags::SECRET) {
                return Err(Errno::EFAULT);
            }
            at = vma.end;
        }
        Ok(())
    }

    /// Visits the mappings in order, until the running task is told to die. The space stays locked meanwhile: `visit`
    /// must not touch user memory.
    pub fn maps(&self, visit: &mut dyn FnMut(&VmaInfo) -> Result<()>) -> Result<()> {
        let inner = self.inner.lock();
        for vma in inner.vmas.iter().killable() {
            visit(&inner.info(vma?, self.allows_large())?)?;
        }
        Ok(())
    }

    /// Visits the mappings that end behind `from` until `visit` says that it has enough (false): where the next one starts, if
    /// there is one. The space stays locked meanwhile, as in [`maps`](Self::maps).
    pub fn maps_from(
        &self,
        from: u64,
        visit: &mut dyn FnMut(&VmaInfo) -> Result<bool>,
    ) -> Result<Option<u64>> {
        let inner = self.inner.lock();
        let mut next = inner.vmas.at_or_after(from);
        let mut wants_more = true;
        while let Some(at) = next {
            let Some(vma) = inner.vmas.get(at) else { break };
            if !wants_more {
                return Ok(Some(vma.start));
            }
            wants_more = visit(&inner.info(vma, self.allows_large())?)?;
            next = inner.vmas.next(at);
        }
        Ok(None)
    }

    /// Memory use.
    pub fn usage(&self) -> VmUsage {
        let inner = self.inner.lock();
        let counts = &inner.counts;
        VmUsage {
            size: counts.size,
            peak: counts.peak,
            rss_anon: counts.rss_anon,
            rss_file: counts.rss_file,
            rss_shmem: counts.rss_shmem,
            rss_peak: counts.rss_peak,
            data: counts.data,
            stack: counts.stack,
            text: counts.text,
            locked: counts.locked,
            page_tables: inner.table.tables + 1,
            allows_large: self.allows_large(),
        }
    }

    /// Where the mapping that grows down and holds `addr` starts (PROT_GROWSDOWN).
    pub fn growing_start(&self, addr: u64) -> Option<u64> {
        let inner = self.inner.lock();
        let vma = inner.vmas.get(inner.vmas.at_or_after(addr)?)?;
        vma.flags.contains(VmFlags::GROWSDOWN).then_some(vma.start.min(addr))
    }
}

impl Inner {
    fn info(&self, vma: &Vma, allows_large: bool) -> Result<VmaInfo> {
        let (mut borrowed, mut private, mut large) = (0, 0, 0);
        let (mut at, end) = (vma.start, vma.end.min(USER_END));
        while let Some(part) = self.table.next_leaf(at, end) {
            at = part.addr_of(part.range.end);
            if part.state == LeafState::Large {
                private += part.range.len() as u64;
                large += part.range.len() as u64;
                continue;
            }
            part.table.for_each(part.range, |_, entry| {
                if entry & OWNED != 0 {
                    private += 1;
                } else if vma.file.is_some() {
                    borrowed += 1;
                }
            });
        }
        Ok(VmaInfo {
            range: vma.start..vma.end,
            flags: vma.flags,
            offset: if vma.file.is_some() { vma.offset } else { 0 },
            dev_ino: vma.file.as_ref().map_or((0, 0), |file| file.source.dev_ino()),
            name: self.name_of(vma)?,
            resident: (borrowed, private),
            large,
            can_be_large: allows_large && vma.wants_large() && vma.holds_any_large(),
        })
    }

    fn name_of(&self, vma: &Vma) -> Result<String> {
        let layout = &self.layout;
        if let Some(file) = &vma.file {
            file.source.name()
        } else if vma.start < layout.brk && vma.end > layout.brk_start {
            try_string("[heap]")
        } else if vma.start <= layout.stack && layout.stack < vma.end {
            try_string("[stack]")
        } else {
            Ok(String::new())
        }
    }
}
