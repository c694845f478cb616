//! fallocate(2) on a page cache: fills the holes of a range, all of them or none.
//!
//! The new pages are kept aside until all are there, so that a call that fails (the file system is full, memory is out,
//! the task was killed) has changed nothing, and what another task writes through a mapping meanwhile stays. Lock: as
//! in the parent; dropped before a page is made.

use super::page_cache::PageCache;
use super::tree::Tree;
use crate::mm::frames::{self, For, Pfn};
use crate::sync::Pace;
use abi::{Errno, Result};
use alea_frames::Owner;
use core::ops::Range;

/// New pages, charged to the file system, that nobody sees yet.
struct Staged<'a> {
    cache: &'a PageCache,
    pages: Tree,
}

impl PageCache {
    /// Fills the holes of `indices` with zeroed pages: all, or none and an error.
    pub fn allocate(&self, indices: Range<u64>) -> Result<()> {
        let wanted = indices.end.saturating_sub(indices.start);
        if let Some(quota) = &self.quota
            && quota.limit().is_some_and(|limit| wanted > limit)
        {
            return Err(Errno::ENOSPC);
        }
        let mut staged = Staged { cache: self, pages: Tree::new() };
        for index in indices.killable() {
            let index = index?;
            // Room in the tree is made now, so that nothing can fail later.
            let slot = self.tree.lock().slot(index);
            if slot.ok_or(Errno::ENOMEM)? == 0 {
                staged.add(index)?;
            }
        }
        staged.show();
        Ok(())
    }
}

impl Staged<'_> {
    fn add(&mut self, index: u64) -> Result<()> {
        self.pages.slot(index).ok_or(Errno::ENOMEM)?;
        self.cache.charge()?;
        match frames::alloc_zeroed(Owner::PageCache, For::User) {
            Some(frame) => {
                self.pages.set(index, frame);
                Ok(())
            }
            None => {
                self.cache.uncharge(1);
                Err(Errno::ENOMEM)
            }
        }
    }

    /// Puts the pages into the file. Where somebody else has filled the hole since, the new page goes when this is
    /// dropped.
    fn show(&mut self) {
        let mut from = 0;
        while let Some(index) = self.pages.next_present(from) {
            crate::sync::cond_resched();
            from = index + 1;
            let mut tree = self.cache.tree.lock();
            if tree.slot(index) == Some(0)
                && let Some(Pfn(frame)) = self.pages.take_one(index)
            {
                tree.set(index, Pfn(frame));
            }
        }
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.cache.free_all(core::mem::replace(&mut self.pages, Tree::new()).into_taken());
    }
}
