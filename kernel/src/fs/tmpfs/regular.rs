//! A regular file of tmpfs: its pages, its seals, its length.
//!
//! Owns the page cache and the seals. Never takes a length that the seals forbid (`resize`). Locks: `writing` orders
//! writes, seals and changes of size; reads take the page cache's lock only.
#![forbid(unsafe_code)]

use crate::mm::PageCache;
use crate::sync::{Mutex, SpinLock, level};
use crate::vfs::object::seals::{Change, Seals};
use crate::vfs::object::usage::Usage;
use abi::Result;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// The longest a file may be, as Linux has it.
pub(super) const MAX_SIZE: u64 = i64::MAX as u64;

/// What a regular file has beyond its attributes.
pub(super) struct Regular {
    pub(super) cache: Arc<PageCache>,
    pub(super) writing: Mutex<()>,
    pub(super) usage: Usage,
    /// [`Seals`]: set under `writing`; see `add_seals` for the order.
    seals: AtomicU32,
    /// Whether it may be given its first name (`O_TMPFILE` without `O_EXCL`), which is locked meanwhile: when that and all
    /// others are gone it gets none any more.
    pub(super) linkable: SpinLock<bool, level::Leaf>,
}

impl Regular {
    pub(super) fn new(cache: Arc<PageCache>) -> Self {
        Self {
            cache,
            writing: Mutex::new(()),
            usage: Usage::default(),
            seals: AtomicU32::new(Seals::FINAL.raw()),
            linkable: SpinLock::new(false),
        }
    }

    pub(super) fn seals(&self) -> Seals {
        // SeqCst: before it, a mapping has noted itself in the cache (`PageCache::note_mapped`); `add_seals` stores
        // first and asks the cache then, so that one of the two sees the other.
        Seals::stored(self.seals.load(Ordering::SeqCst))
    }

    /// `writing` is held, or nobody else has the file yet.
    pub(super) fn set_seals(&self, seals: Seals) {
        self.seals.store(seals.raw(), Ordering::SeqCst);
    }

    /// Sets the length; `writing` is held.
    pub(super) fn resize(&self, size: u64) -> Result<()> {
        let old = self.cache.size();
        self.seals().check(Change::Resize { from: old, to: size })?;
        if size < old {
            self.cache.truncate(size)
        } else {
            self.cache.set_size(size);
            Ok(())
        }
    }
}
