//! [`Vma`]: one mapping.
//!
//! Owns its part in the file behind it: the file's observer counts mappings, by [`FileOfVma`]. Never empty, and never across
//! another one. Locks: none of its own; the space's guards the list that holds it.

use crate::base::page::{self, PteFlags};
use crate::mm::layout::{PAGE_SHIFT, STACK_GUARD};
use crate::mm::page_cache::PageCache;
use crate::mm::page_cache::source::MapSource;
use crate::mm::space::request::VmFlags;
use alea_ranges::Span;
use alloc::sync::Arc;

/// The file behind mappings, with its cache held: what a page-table entry points to cannot depend on what
/// the source's methods return.
pub(in crate::mm::space) struct MappedFile {
    pub source: Arc<dyn MapSource>,
    pub cache: Arc<PageCache>,
    /// Whether the source has an observer.
    pub is_observed: bool,
}

impl MappedFile {
    pub fn new(source: Arc<dyn MapSource>) -> Self {
        let (cache, is_observed) = (source.cache().clone(), source.observer().is_some());
        Self { source, cache, is_observed }
    }
}

/// What one mapping has of its file: as long as it lives, the source's observer counts the mapping.
pub(in crate::mm::space) struct FileOfVma(Arc<MappedFile>);

impl FileOfVma {
    #[inline]
    pub fn new(file: Arc<MappedFile>) -> Self {
        if file.is_observed
            && let Some(observer) = file.source.observer()
        {
            observer.mapped();
        }
        Self(file)
    }

    /// The file, for somebody who is no mapping.
    #[inline]
    pub fn shared(&self) -> &Arc<MappedFile> {
        &self.0
    }
}

impl Clone for FileOfVma {
    #[inline]
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for FileOfVma {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_observed
            && let Some(observer) = self.0.source.observer()
        {
            observer.unmapped();
        }
    }
}

impl core::ops::Deref for FileOfVma {
    type Target = MappedFile;
    #[inline]
    fn deref(&self) -> &MappedFile {
        &self.0
    }
}

/// One mapping: a page-aligned, not empty range.
pub(in crate::mm::space) struct Vma {
    pub start: u64,
    pub end: u64,
    pub flags: VmFlags,
    /// Byte offset of `start` in the file.
    pub offset: u64,
    pub file: Option<FileOfVma>,
}

impl Span for Vma {
    #[inline]
    fn start(&self) -> u64 {
        self.start
    }
    #[inline]
    fn end(&self) -> u64 {
        self.end
    }
    #[inline]
    fn guard(&self) -> u64 {
        if self.flags.contains(VmFlags::GROWSDOWN) { STACK_GUARD } else { 0 }
    }
}

impl Vma {
    /// A copy of it; for fork and for splitting.
    pub fn duplicate(&self) -> Self {
        let Self { start, end, flags, offset, .. } = *self;
        Self { start, end, flags, offset, file: self.file.clone() }
    }

    /// The part from `at` on, taken off.
    pub fn split_off(&mut self, at: u64) -> Self {
        debug_assert!(self.start < at && at < self.end);
        let mut upper = self.duplicate();
        upper.start = at;
        upper.offset = self.offset_of(at);
        self.end = at;
        upper
    }

    pub fn pages(&self) -> u64 {
        (self.end - self.start) >> PAGE_SHIFT
    }

    /// The file offset of `addr`; meaningless without a file.
    #[inline]
    pub fn offset_of(&self, addr: u64) -> u64 {
        // Checked when it was mapped: offset plus length fits.
        self.offset.wrapping_add(addr - self.start)
    }

    /// The file's page index at `addr`.
    #[inline]
    pub fn index_of(&self, addr: u64) -> u64 {
        self.offset_of(addr) >> PAGE_SHIFT
    }

    #[inline]
    pub fn is_private(&self) -> bool {
        !self.flags.contains(VmFlags::SHARED)
    }

    pub fn is_private_anon(&self) -> bool {
        self.file.is_none() && self.is_private()
    }

    /// Whether mlock does something to it: droppable pages cannot be locked; the call succeeds all the same.
    pub fn can_be_locked(&self) -> bool {
        !self.flags.intersects(VmFlags::DROPPABLE.union(VmFlags::SPECIAL).union(VmFlags::SECRET))
    }

    /// The vDSO's pages of data.
    pub fn is_kernel_data(&self) -> bool {
        self.flags.contains(VmFlags::SPECIAL) && !self.flags.contains(VmFlags::MAY_EXEC)
    }

    /// Whether any access is allowed.
    #[inline]
    pub fn is_accessible(&self) -> bool {
        self.flags.intersects(VmFlags::ACCESS)
    }

    /// The page-table bits of its pages, without the right to write.
    #[inline]
    pub fn entry_flags(&self) -> u64 {
        let mut flags = PteFlags::PRESENT | PteFlags::USER;
        if !self.flags.contains(VmFlags::EXEC) {
            flags |= page::nx();
        }
        flags.bits()
    }

    /// The page-table bits of pages that it borrows from a cache.
    #[inline]
    pub fn borrowed_flags(&self) -> u64 {
        let shared_writable = VmFlags::SHARED.union(VmFlags::WRITE);
        if self.flags.contains(shared_writable) {
            self.entry_flags() | PteFlags::WRITABLE.bits()
        } else {
            self.entry_flags()
        }
    }

    /// Whether `next`, which starts where this ends, continues it.
    pub fn continues_into(&self, next: &Self) -> bool {
        let ignored = VmFlags::HAS_ANON;
        self.end == next.start
            && self.flags.difference(ignored) == next.flags.difference(ignored)
            && match (&self.file, &next.file) {
                (None, None) => true,
                (Some(a), Some(b)) => {
                    // As on Linux, what is observed stays as it was split.
                    !a.is_observed
                        && Arc::ptr_eq(&a.source, &b.source)
                        && self.offset_of(self.end) == next.offset
                }
                _ => false,
            }
    }
}
