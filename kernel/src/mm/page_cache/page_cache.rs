//! [`PageCache`]: the pages of one file or shared memory object, and its length.
//!
//! Invariants:
//! - Each slot of the tree holds one reference to its frame.
//! - A page-table entry that maps a page of the cache holds no reference of its own. It stays good because
//!   the mapping keeps the cache alive and because a frame is freed only after it was taken out of the tree
//!   and then out of every mapping ([`take_out`](PageCache::take_out)). Whoever maps a page looks it up,
//!   with the length checked under the same lock, while holding the lock of the address space, so a lookup
//!   from before the removal is seen by the unmapping that follows it.
//! - What lies beyond the length in the last page is zero when the length grows over it.
//!
//! Owns these pages. Never: no frame is freed while a mapping may point to it. Locks: `PageCache` for tree and length,
//! which is not held across a user copy.

pub(super) use super::footprint::Footprint;

use super::tree::{Taken, Tree};
use crate::base::PAGE_SIZE;
use crate::mm::commit::{self, Promise};
use crate::mm::fallible::try_box;
use crate::mm::frames::frame::Frame;
use crate::mm::frames::{self, For, Pfn, direct};
use crate::mm::layout::PAGE_SHIFT;
use crate::mm::space;
use crate::sync::{Once, SpinLock, level};
use abi::{Errno, Result};
use alea_frames::Owner;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A file system's limit on pages: asked before a page is added, told when pages go.
pub trait PageQuota: Send + Sync {
    /// Charges `pages` more; `ENOSPC` if the limit does not allow them.
    fn charge(&self, pages: u64) -> Result<()>;
    /// Gives back `pages`.
    fn uncharge(&self, pages: u64);
    /// Most pages that it ever allows; `None` without a limit.
    fn limit(&self) -> Option<u64>;
}

/// The pages of one file or shared memory object, and its length.
pub struct PageCache {
    pub(super) tree: SpinLock<Tree, level::PageCache>,
    /// Length in bytes. Changed under the tree's lock.
    pub(super) size: AtomicU64,
    /// Whether any address space ever mapped it.
    mapped: AtomicBool,
    pub(super) quota: Option<Arc<dyn PageQuota>>,
    /// What was promised of it as a whole; without that each of its pages is a promise.
    promise: Option<Promise>,
    /// Its pages are not in the direct map: only mappings show them.
    is_secret: bool,
    /// For programs: what executions touch.
    footprint: Once<Option<Box<Footprint>>>,
}

/// What a mapping finds at an index.
pub(in crate::mm) enum Lookup {
    /// Beyond the last page of the file.
    Beyond,
    Hole,
    Page(Pfn),
}

impl PageCache {
    /// An empty cache of length 0 without a limit.
    pub const fn new() -> Self {
        Self {
            tree: SpinLock::new(Tree::new()),
            size: AtomicU64::new(0),
            mapped: AtomicBool::new(false),
            quota: None,
            promise: None,
            is_secret: false,
            footprint: Once::new(),
        }
    }

    /// An empty cache of memory that was promised as a whole.
    pub fn promised(promise: Promise) -> Self {
        let mut cache = Self::new();
        cache.promise = Some(promise);
        cache
    }

    /// An empty cache of pages that only mappings show: nothing else may read, write or zero them.
    pub fn secret() -> Self {
        let mut cache = Self::new();
        cache.is_secret = true;
        cache
    }

    /// An empty cache whose pages are charged to `quota`.
    pub fn with_quota(quota: Arc<dyn PageQuota>) -> Self {
        let mut cache = Self::new();
        cache.quota = Some(quota);
        cache
    }

    /// The file's length in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        // Relaxed: a snapshot; whoever needs it to be true with the tree holds the lock.
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the length without touching pages: for a file that grew (use `truncate` to shrink).
    pub fn set_size(&self, len: u64) {
        let _tree = self.tree.lock();
        self.size.store(len, Ordering::Relaxed);
    }

    /// Sets the length of a file that has had none yet: whether it was so.
    pub fn set_first_size(&self, len: u64) -> bool {
        let _tree = self.tree.lock();
        let is_first = self.size() == 0;
        if is_first {
            self.size.store(len, Ordering::Relaxed);
        }
        is_first
    }

    /// The page at `index`, if it is there.
    #[inline]
    pub fn get(&self, index: u64) -> Option<Frame> {
        let tree = self.tree.lock();
        let frame = tree.get(index)?;
        frame.meta().get();
        Some(Frame::from_raw(frame))
    }

    /// Makes `frame` the page at `index`; what was there goes, also from every mapping.
    pub fn insert(&self, index: u64, frame: Frame) -> Result<()> {
        self.take_out(index..index.saturating_add(1), None, false)?;
        self.insert_absent(index, frame).map(drop)
    }

    /// Puts `frame` into a hole, wherever the file ends: the page that is there afterwards, another one if somebody was faster.
    pub(super) fn insert_absent(&self, index: u64, frame: Frame) -> Result<Frame> {
        self.insert_before(|| u64::MAX, index, frame)?.ok_or(Errno::EFBIG)
    }

    /// The same before page `end`, which is asked for with the tree locked; nothing for what lies beyond.
    fn insert_before(
        &self,
        end: impl FnOnce() -> u64,
        index: u64,
        frame: Frame,
    ) -> Result<Option<Frame>> {
        frames::change_owner(frame.pfn(), Owner::PageCache);
        let mut tree = self.tree.lock();
        if index >= end() {
            return Ok(None);
        }
        match tree.slot(index) {
            Some(0) => {
                // Only who fills the hole is charged: nobody is refused for want of what another gives back in a moment.
                self.charge()?;
                tree.set(index, frame.clone().into_raw());
                Ok(Some(frame))
            }
            Some(there) => {
                Pfn(there).meta().get();
                Ok(Some(Frame::from_raw(Pfn(there))))
            }
            None => Err(Errno::ENOMEM),
        }
    }

    /// The page after the last one within the length.
    fn end(&self) -> u64 {
        self.size().div_ceil(PAGE_SIZE as u64)
    }

    /// What is at `index`, for an address space whose lock the caller holds.
    #[inline]
    pub(in crate::mm) fn lookup(&self, index: u64) -> Lookup {
        let tree = self.tree.lock();
        if index >= self.end() {
            return Lookup::Beyond;
        }
        match tree.get(index) {
            Some(frame) => Lookup::Page(frame),
            None => Lookup::Hole,
        }
    }

    /// As [`lookup`](Self::lookup), but fills a hole. Gives no reference: see the invariants.
    pub(in crate::mm) fn lookup_or_alloc(&self, index: u64) -> Result<Lookup> {
        loop {
            match self.lookup(index) {
                Lookup::Hole => {}
                found => return Ok(found),
            }
            let new = frames::alloc_zeroed(Owner::PageCache, For::User).ok_or(Errno::ENOMEM)?;
            if self.is_secret {
                self.insert_secret(index, new)?;
                continue;
            }
            // The file may have been made short meanwhile, and what lay beyond its new end been taken out: a page that
            // came there now would stay. Or another makes a hole of it again before the next look: then anew.
            self.insert_before(|| self.end(), index, Frame::from_raw(new))?;
        }
    }

    /// Fills a hole with a page that is hidden first; if another was faster, or the file ends before it, the page goes back.
    #[cold]
    fn insert_secret(&self, index: u64, new: Pfn) -> Result<()> {
        let frame = Frame::from_raw(new);
        let stale = direct::hide(new)?;
        space::flush_kernel(&[stale.0]);
        let inserted = self.insert_before(|| self.end(), index, frame.clone());
        if !matches!(&inserted, Ok(Some(there)) if there.pfn() == new) {
            direct::reveal(new);
        }
        inserted.map(drop)
    }

    /// Gives back a page that was taken out of the tree and of all mappings.
    fn put(&self, frame: Pfn) {
        if self.is_secret {
            direct::reveal(frame);
        }
        frames::put(frame);
    }

    /// Shows the present pages of `indices` that lie within the length, in runs of slots (0 for a hole), for
    /// an address space whose lock the caller holds. `visit` runs with the tree locked.
    #[inline]
    pub(in crate::mm) fn runs(&self, indices: Range<u64>, mut visit: impl FnMut(u64, &[u32])) {
        let tree = self.tree.lock();
        let end = indices.end.min(self.end());
        tree.runs(indices.start..end, &mut visit);
    }

    /// Notes that an address space maps it: from now on pages are looked for in mappings when they go.
    #[inline]
    pub(in crate::mm) fn note_mapped(&self) {
        // Set while holding an address space's lock, which `take_out` takes later in order to look for mappings;
        // a mapping made after the check finds the pages gone already. SeqCst: whoever notes himself and then
        // looks at the seals sees those that were set before `is_mapped_writable` said no.
        if !self.mapped.load(Ordering::SeqCst) {
            self.mapped.store(true, Ordering::SeqCst);
        }
    }

    /// Whether some address space has a shared mapping of it that is or may become writable (F_SEAL_WRITE).
    pub fn is_mapped_writable(&self) -> bool {
        // Acquire by the locks of the spaces: see `note_mapped`.
        self.mapped.load(Ordering::SeqCst) && space::is_mapped_writable(self)
    }

    /// What executions of it touch, if it is a program.
    #[inline]
    pub(in crate::mm) fn footprint(&self) -> Option<&Footprint> {
        self.footprint.get()?.as_deref()
    }

    /// The same, from now on recorded.
    pub(in crate::mm) fn make_footprint(&self) -> Option<&Footprint> {
        let pages = self.end();
        self.footprint
            .call_once(|| Footprint::new(pages).and_then(|made| try_box(made).ok()))
            .as_deref()
    }

    /// Sets the length: zeroes the tail of the last page and drops what lies beyond, also from every
    /// mapping, where it then raises SIGBUS.
    pub fn truncate(&self, len: u64) -> Result<()> {
        let first_gone = len.div_ceil(PAGE_SIZE as u64);
        if len >= self.size() {
            self.set_size(len);
            return Ok(());
        }
        self.take_out(first_gone..u64::MAX, Some(len), true)?;
        let used = (len % PAGE_SIZE as u64) as usize;
        if used > 0
            && let Some(last) = self.get(len >> PAGE_SHIFT)
        {
            last.zero(used, PAGE_SIZE - used);
        }
        Ok(())
    }

    /// Makes a hole of the byte range; its pages go from every mapping too.
    pub fn punch(&self, bytes: Range<u64>) -> Result<()> {
        let page = PAGE_SIZE as u64;
        let (first, end) = (bytes.start.div_ceil(page), bytes.end / page);
        if first > end {
            // Within one page.
            self.zero_part(bytes.start, bytes.end);
            return Ok(());
        }
        self.zero_part(bytes.start, first * page);
        self.zero_part(end * page, bytes.end);
        if first < end {
            self.take_out(first..end, None, false)?;
        }
        Ok(())
    }

    fn zero_part(&self, start: u64, end: u64) {
        if start < end
            && let Some(frame) = self.get(start >> PAGE_SHIFT)
        {
            let offset = (start % PAGE_SIZE as u64) as usize;
            frame.zero(offset, ((end - start) as usize).min(PAGE_SIZE - offset));
        }
    }

    /// Takes the pages of `indices` out of the tree (setting the length in the first step), then out of every
    /// mapping (private copies too, if `copies`), then frees them, in steps. They are charged as long as they are in the tree:
    /// who fills a hole that another has just made finds its charge given back. `ENOMEM`: nothing was changed.
    fn take_out(&self, indices: Range<u64>, len: Option<u64>, copies: bool) -> Result<()> {
        let (ends, mut steps) = {
            let mut tree = self.tree.lock();
            let taken = tree.take_ends(&indices)?;
            if let Some(len) = len {
                self.size.store(len, Ordering::Relaxed);
            }
            self.uncharge(taken.0.resident());
            taken
        };
        // Acquire: see `note_mapped`; the locks of the address spaces do the ordering.
        let unmap = |part: Range<u64>| {
            if self.mapped.load(Ordering::SeqCst) {
                space::unmap_everywhere(self, part, copies);
            }
        };
        let mut from = indices.start;
        while let Some(until) = {
            let mut tree = self.tree.lock();
            let until = tree.take_step(&mut steps);
            self.uncharge(steps.resident());
            until
        } {
            unmap(from..until);
            steps.give(|frame| self.put(frame));
            from = until;
        }
        // What is left of the range, and of its ends, which the steps may have passed.
        if copies || !ends.is_empty() {
            unmap(from.min(indices.end)..indices.end);
        }
        ends.into_frames(|frame| self.put(frame));
        Ok(())
    }

    /// Frees pages that are charged still.
    pub(super) fn free_all(&self, taken: Taken) {
        let pages = taken.resident();
        taken.into_frames(|frame| self.put(frame));
        self.uncharge(pages);
    }

    /// Counts a page more.
    pub(super) fn charge(&self) -> Result<()> {
        if self.promise.is_none() {
            commit::count(1);
            if !commit::holds(0) {
                commit::count(-1);
                // As Linux's tmpfs.
                return Err(Errno::ENOSPC);
            }
        }
        let charged = self.quota.as_ref().map_or(Ok(()), |quota| quota.charge(1));
        if charged.is_err() && self.promise.is_none() {
            commit::count(-1);
        }
        charged
    }

    /// Counts pages out.
    pub(super) fn uncharge(&self, pages: u64) {
        if self.promise.is_none() {
            commit::count(-pages.cast_signed());
        }
        if let Some(quota) = &self.quota
            && pages > 0
        {
            quota.uncharge(pages);
        }
    }

    /// How many pages are there.
    pub fn resident(&self) -> u64 {
        self.tree.lock().resident()
    }

    /// The first byte at or after `off` that lies in a present page (SEEK_DATA).
    pub fn next_data(&self, off: u64) -> Option<u64> {
        let tree = self.tree.lock();
        let index = tree.next_present(off >> PAGE_SHIFT)?;
        let at = (index << PAGE_SHIFT).max(off);
        (at < self.size()).then_some(at)
    }

    /// The first byte at or after `off` that lies in a hole (SEEK_HOLE); at most the length.
    pub fn next_hole(&self, off: u64) -> u64 {
        let tree = self.tree.lock();
        let index = tree.next_absent(off >> PAGE_SHIFT);
        index.saturating_mul(PAGE_SIZE as u64).max(off).min(self.size())
    }
}

impl Default for PageCache {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        // No mapping is left: each keeps the cache alive.
        let tree = core::mem::replace(self.tree.get_mut(), Tree::new());
        self.free_all(tree.into_taken());
    }
}
