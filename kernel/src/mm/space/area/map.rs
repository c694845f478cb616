//! mmap: a request becomes a mapping; its pages come later, by faults, or at once where it asks for that.
//!
//! Owns the objects behind shared anonymous mappings. Never unmaps what was there (MAP_FIXED) before all that can be refused has
//! been looked at; only memory can be missing then. Locks: the space's.

use super::droppable;
use super::unmap::MAX_MAP_COUNT;
use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::commit::{self, Promise};
use crate::mm::fallible::{try_arc, try_string};
use crate::mm::frames::kernel_memory_low;
use crate::mm::layout::{PAGE_SHIFT, page_down, page_up};
use crate::mm::page_cache::PageCache;
use crate::mm::page_cache::source::MapSource;
use crate::mm::space::limits::limits;
use crate::mm::space::request::{Backing, MapFixed, MapRequest, Prot, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::LEAF_SPAN;
use crate::mm::space::vma::{FileOfVma, MappedFile, Vma};
use crate::sync::cond_resched;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use x86_64::VirtAddr;

impl AddressSpace {
    /// mmap: the address chosen.
    pub fn map(&self, request: MapRequest) -> Result<VirtAddr> {
        let populate = request.populate || request.flags.contains(VmFlags::LOCKED);
        let mut inner = self.inner.lock();
        let (addr, len) = inner.map(self, request)?;
        if populate || inner.lock_future {
            // As on Linux, what cannot be populated is left to faults.
            let _ = inner.populate(self, addr, addr + len);
        }
        Ok(VirtAddr::new_truncate(addr))
    }

    /// Maps the initial stack below `top`, `size` bytes now, growing down to the stack limit.
    pub fn map_stack(&self, top: u64, size: u64, exec: bool) -> Result<()> {
        let size = page_up(size).ok_or(Errno::ENOMEM)?;
        let start = page_down(top).checked_sub(size).ok_or(Errno::ENOMEM)?;
        let mut prot = Prot::READ | Prot::WRITE;
        prot.set(Prot::EXEC, exec);
        let mut inner = self.inner.lock();
        inner.map(
            self,
            MapRequest {
                addr: Some(VirtAddr::new_truncate(start)),
                fixed: MapFixed::NoReplace,
                len: size,
                prot,
                shared: false,
                backing: Backing::ANON,
                flags: VmFlags::GROWSDOWN,
                populate: false,
            },
        )?;
        inner.layout.stack = page_down(top) - 1;
        Ok(())
    }
}

impl Inner {
    /// Makes the mapping: address and length.
    pub(super) fn map(&mut self, space: &AddressSpace, request: MapRequest) -> Result<(u64, u64)> {
        let len = page_up(request.len).ok_or(Errno::ENOMEM)?;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let flags = self.flags_of(&request)?;
        let addr = self.place(&request, len)?;
        // Kept until the mapping itself is counted.
        let _promise = self.check_room(flags, addr, len, request.fixed == MapFixed::Replace)?;
        let (file, offset) = match request.backing {
            Backing::File { source, offset } => (Some(self.file_of(source, addr)?), offset),
            Backing::Anon { .. } if request.shared => {
                let source =
                    SharedAnon::source(self.promise_shared(flags, len >> PAGE_SHIFT)?, len)?;
                source.cache().note_mapped();
                (Some(self.file_of(source, addr)?), 0)
            }
            Backing::Anon { .. } => (None, 0),
        };
        if request.fixed == MapFixed::Replace {
            self.unmap_range(space, addr, addr + len)?;
        }
        let file = file.map(FileOfVma::new);
        self.insert(Vma { start: addr, end: addr + len, flags, offset, file })?;
        Ok((addr, len))
    }

    /// The flags of the new mapping.
    fn flags_of(&self, request: &MapRequest) -> Result<VmFlags> {
        let mut flags = request.flags | VmFlags::from_prot(request.prot);
        flags.set(VmFlags::SHARED, request.shared);
        flags.remove(VmFlags::LOW);
        if commit::is_strict() {
            flags.remove(VmFlags::NORESERVE);
        }
        if flags.contains(VmFlags::DROPPABLE) {
            droppable::note();
        } else if self.lock_future {
            flags.insert(VmFlags::LOCKED);
        }
        match &request.backing {
            Backing::File { source, offset } => {
                let end = page_up(request.len).and_then(|len| offset.checked_add(len));
                if !offset.is_multiple_of(PAGE_SIZE as u64) {
                    return Err(Errno::EINVAL);
                }
                if end.is_none_or(|end| end > i64::MAX as u64) {
                    return Err(Errno::EOVERFLOW);
                }
                // Noted first: a seal against writing is refused from now on, or seen here.
                source.cache().note_mapped();
                flags |= source.rights(request.shared, request.prot)?;
                flags.set(VmFlags::SHMEM, source.is_shmem());
            }
            Backing::Anon { may } => {
                flags |= *may;
                flags.set(VmFlags::SHMEM, request.shared);
            }
        }
        flags.set(VmFlags::PROMISED, flags.is_promise());
        Ok(flags)
    }

    /// Shared memory that is no file is promised as a whole, unless the program wants it otherwise.
    fn promise_shared(&self, flags: VmFlags, pages: u64) -> Result<Promise> {
        match flags.contains(VmFlags::NORESERVE) {
            true => Ok(Promise::NONE),
            false => Promise::new(pages, self.counts.size),
        }
    }

    fn place(&mut self, request: &MapRequest, len: u64) -> Result<u64> {
        let hint = request.addr.map(VirtAddr::as_u64);
        if request.fixed == MapFixed::No {
            let hint = hint.filter(|&hint| hint != 0);
            if request.flags.contains(VmFlags::LOW) {
                return self.choose_low(hint, len);
            }
            let is_own = matches!(request.backing, Backing::Anon { .. }) && !request.shared;
            if hint.is_none() && is_own && len.is_multiple_of(LEAF_SPAN) {
                return self.choose_large(len);
            }
            return self.choose(hint, len);
        }
        let addr = hint.unwrap_or(0);
        if !addr.is_multiple_of(PAGE_SIZE as u64) {
            return Err(Errno::EINVAL);
        }
        if len > USER_END || addr > USER_END - len {
            return Err(Errno::ENOMEM);
        }
        if request.fixed == MapFixed::NoReplace && !self.vmas.is_free(addr, addr + len) {
            return Err(Errno::EEXIST);
        }
        Ok(addr)
    }

    /// Checks the limits for a new mapping of `len` bytes at `addr`, which may replace others. What it promises is held by the caller until
    /// the mapping is counted.
    pub(super) fn check_room(
        &self,
        flags: VmFlags,
        addr: u64,
        len: u64,
        replaces: bool,
    ) -> Result<Promise> {
        let pages = len >> PAGE_SHIFT;
        let replaced = if replaces { self.mapped_pages(addr, addr + len) } else { 0 };
        let size = self.counts.size.saturating_sub(replaced).saturating_add(pages);
        let limits = limits();
        if size > limits.address_space >> PAGE_SHIFT
            || self.vmas.len() >= MAX_MAP_COUNT.get() as usize
        {
            return Err(Errno::ENOMEM);
        }
        let is_data = flags.is_private_writable() && !flags.contains(VmFlags::GROWSDOWN);
        if is_data && self.counts.data.saturating_add(pages) > limits.data >> PAGE_SHIFT {
            return Err(Errno::ENOMEM);
        }
        if flags.contains(VmFlags::PROMISED) {
            Promise::new(pages, self.counts.size)
        } else {
            Ok(Promise::NONE)
        }
    }

    /// Pages of mappings in `start..end`.
    fn mapped_pages(&self, start: u64, end: u64) -> u64 {
        let (mut pages, mut next) = (0, self.vmas.at_or_after(start));
        while let Some(vma) = next.and_then(|pos| self.vmas.get(pos)).filter(|vma| vma.start < end)
        {
            cond_resched();
            pages += (vma.end.min(end) - vma.start.max(start)) >> PAGE_SHIFT;
            next = next.and_then(|pos| self.vmas.next(pos));
        }
        pages
    }

    /// The file of a mapping that will be at `addr`: the neighbour's, if it has the same source.
    fn file_of(&self, source: Arc<dyn MapSource>, addr: u64) -> Result<Arc<MappedFile>> {
        let below = self.vmas.before(addr).and_then(|pos| self.vmas.get(pos));
        match below.and_then(|vma| vma.file.as_ref()) {
            Some(file) if Arc::ptr_eq(&file.source, &source) => Ok(file.shared().clone()),
            _ => try_arc(MappedFile::new(source)),
        }
    }

    /// Puts a mapping into free space, joined with its neighbours where they continue it.
    pub(super) fn insert(&mut self, vma: Vma) -> Result<()> {
        let (flags, pages, start, end) = (vma.flags, vma.pages(), vma.start, vma.end);
        let below = self.vmas.before(start);
        let pos = match below {
            Some(pos) if self.vmas.get(pos).is_some_and(|below| below.continues_into(&vma)) => {
                self.vmas.update(pos, |below| below.end = end);
                pos
            }
            _ => self.vmas.insert(vma).map_err(|_| Errno::ENOMEM)?,
        };
        self.account(flags, pages, 1);
        let above = self.vmas.next(pos).and_then(|above| self.vmas.get(above));
        if above.is_some_and(|above| above.start == end) {
            self.merge(end, end);
        }
        Ok(())
    }
}

/// The object behind a shared anonymous mapping.
struct SharedAnon {
    cache: Arc<PageCache>,
}

impl SharedAnon {
    fn source(promise: Promise, len: u64) -> Result<Arc<dyn MapSource>> {
        let cache = try_arc(PageCache::promised(promise))?;
        cache.set_size(len);
        Ok(try_arc(Self { cache })?)
    }
}

impl MapSource for SharedAnon {
    fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }
    fn name(&self) -> Result<String> {
        try_string("/dev/zero (deleted)")
    }
    fn dev_ino(&self) -> (u64, u64) {
        // Linux's number for its internal shm mount is 0:1; the inode only has to be distinct.
        (1, Arc::as_ptr(&self.cache) as u64 >> 4 & 0xffff_ffff)
    }
    fn is_shmem(&self) -> bool {
        true
    }
}
