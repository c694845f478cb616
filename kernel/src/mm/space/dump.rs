//! What a core file is made from: the mappings of a space, and which of their pages hold anything.
//!
//! Owns nothing. Never touches a page itself. Locks: the space's own, never across a write of the file.

use super::request::VmFlags;
use super::space::{AddressSpace, Inner};
use super::vma::Vma;
use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::fallible::TryGrow;
use crate::mm::page_cache::source::MapSource;
use crate::sync::Pace;
use abi::Result;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// A mapping, as a core file sees it.
pub struct CoreMapping {
    pub range: Range<u64>,
    pub flags: VmFlags,
    /// Byte offset in the file.
    pub offset: u64,
    /// The file, if it maps one.
    pub source: Option<Arc<dyn MapSource>>,
    /// Whether it has pages that are the program's own, or had some once.
    pub was_written: bool,
    /// Of the kernel: the vDSO, or its data.
    pub is_special: bool,
}

impl AddressSpace {
    /// The mappings in order.
    ///
    /// # Errors
    /// `ENOMEM`, `EINTR` if the running task is told to die.
    pub fn core_mappings(&self) -> Result<Vec<CoreMapping>> {
        let inner = self.inner.lock();
        let mut mappings = Vec::new();
        for vma in inner.vmas.iter().killable() {
            mappings.try_push(inner.core_mapping(vma?))?;
        }
        Ok(mappings)
    }

    /// The first page of `start..end` that may hold something else than zeros, which no one has to read to know.
    pub fn next_core_page(&self, start: u64, end: u64) -> Option<u64> {
        let inner = self.inner.lock();
        let mut at = start;
        while at < end {
            let vma = inner.vmas.get(inner.vmas.at_or_after(at)?)?;
            let upto = vma.end.min(end);
            if let Some(page) = inner.next_page_of(vma, at.max(vma.start), upto) {
                return Some(page);
            }
            at = upto;
        }
        None
    }
}

impl Inner {
    fn core_mapping(&self, vma: &Vma) -> CoreMapping {
        let is_special = vma.flags.contains(VmFlags::SPECIAL);
        let has_pages = || self.table.next_entry(vma.start, vma.end.min(USER_END)).is_some();
        let own = vma.flags.contains(VmFlags::HAS_ANON) || vma.is_private_anon() && has_pages();
        let file = vma.file.as_ref().filter(|_| !is_special);
        CoreMapping {
            range: vma.start..vma.end,
            flags: vma.flags,
            offset: vma.offset,
            source: file.map(|file| file.source.clone()),
            was_written: own,
            is_special,
        }
    }

    fn next_page_of(&self, vma: &Vma, start: u64, end: u64) -> Option<u64> {
        if start >= end || vma.is_kernel_data() {
            return None;
        }
        let mapped = self.table.next_entry(start, end);
        let Some(file) = &vma.file else { return mapped };
        // What is not in the cache of a file is a hole of it.
        let data = file.cache.next_data(vma.offset_of(start)).map(|data| {
            let page = data & !(PAGE_SIZE as u64 - 1);
            start.saturating_add(page.saturating_sub(vma.offset_of(start)))
        });
        let data = data.filter(|&page| page < end);
        mapped.into_iter().chain(data).min()
    }
}
