//! [`Tmpfs`]: one instance, which counts pages and inodes against its limits.
//!
//! Owns the counters and the limits of one instance. Never exceeds a limit, but may stand above one that a remount has
//! lowered meanwhile. Locks: none; the counters are atomics.

use super::options::{Options, PAGE, default_pages};
use crate::mm::PageQuota;
use crate::mm::fallible::{TryString, try_arc};
use crate::try_write;
use crate::vfs::{DevId, FileSystem, Owner};
use abi::fs::Statfs;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

const MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// What an inode is charged, in bytes.
const INODE_SPACE: u64 = 1024;

/// One instance.
pub struct Tmpfs {
    name: &'static str,
    pub(super) dev: DevId,
    // Relaxed throughout: counters and limits protect nothing but themselves.
    next_ino: AtomicU64,
    pages: AtomicU64,
    max_pages: AtomicU64,
    /// What inodes and their extended attributes take, in bytes: Linux's measure.
    inode_space: AtomicU64,
    max_inodes: AtomicU64,
    /// Whether the limits were given by the mount's options, and are shown.
    shown: [AtomicU64; 2],
    pub(super) root_mode: u32,
    pub(super) root_owner: Owner,
}

impl Tmpfs {
    pub(super) fn new(name: &'static str, options: &Options, dev: DevId) -> Result<Arc<Self>> {
        let half = default_pages();
        try_arc(Self {
            name,
            dev,
            next_ino: AtomicU64::new(1),
            pages: AtomicU64::new(0),
            max_pages: AtomicU64::new(options.pages.unwrap_or(half)),
            inode_space: AtomicU64::new(0),
            max_inodes: AtomicU64::new(options.inodes.unwrap_or(half)),
            shown: [
                AtomicU64::new(u64::from(options.pages.is_some())),
                AtomicU64::new(u64::from(options.inodes.is_some())),
            ],
            root_mode: options.mode.unwrap_or(0o1777),
            root_owner: Owner { uid: options.uid.unwrap_or(0), gid: options.gid.unwrap_or(0) },
        })
    }

    fn is_ramfs(&self) -> bool {
        self.name == "ramfs"
    }

    pub(super) fn next_ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn charge_inode(&self) -> Result<()> {
        self.charge_space(INODE_SPACE)
    }

    pub(super) fn uncharge_inode(&self) {
        self.uncharge_space(INODE_SPACE);
    }

    pub(super) fn charge_space(&self, bytes: u64) -> Result<()> {
        let max = self.max_inodes.load(Ordering::Relaxed);
        take(&self.inode_space, bytes, max.saturating_mul(INODE_SPACE))
    }

    pub(super) fn uncharge_space(&self, bytes: u64) {
        self.inode_space.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Inodes' worth of space that is taken.
    fn inodes(&self) -> u64 {
        self.inode_space.load(Ordering::Relaxed).div_ceil(INODE_SPACE)
    }
}

/// Adds `by` to a counter unless that exceeds `max` (0: no limit).
fn take(counter: &AtomicU64, by: u64, max: u64) -> Result<()> {
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            now.checked_add(by).filter(|&new| max == 0 || new <= max)
        })
        .map(drop)
        .map_err(|_| Errno::ENOSPC)
}

impl PageQuota for Tmpfs {
    fn charge(&self, pages: u64) -> Result<()> {
        take(&self.pages, pages, self.max_pages.load(Ordering::Relaxed))
    }
    fn uncharge(&self, pages: u64) {
        self.pages.fetch_sub(pages, Ordering::Relaxed);
    }
    fn limit(&self) -> Option<u64> {
        Some(self.max_pages.load(Ordering::Relaxed)).filter(|&max| max != 0)
    }
}

impl FileSystem for Tmpfs {
    fn name(&self) -> &'static str {
        self.name
    }

    fn statfs(&self) -> Statfs {
        let max = self.max_pages.load(Ordering::Relaxed);
        let files = self.max_inodes.load(Ordering::Relaxed);
        let free = max.saturating_sub(self.pages.load(Ordering::Relaxed));
        let dev = self.dev.0;
        Statfs {
            kind: if self.is_ramfs() { RAMFS_MAGIC } else { MAGIC },
            bsize: PAGE as i64,
            blocks: max,
            bfree: free,
            bavail: free,
            files,
            ffree: files.saturating_sub(self.inodes()),
            fsid: [dev as i32, (dev >> 32) as i32],
            namelen: 255,
            frsize: PAGE as i64,
            ..Statfs::default()
        }
    }

    fn options(&self) -> Result<String> {
        let mut text = String::new();
        let shown = |at: usize| self.shown[at].load(Ordering::Relaxed) != 0;
        let pages = self.max_pages.load(Ordering::Relaxed);
        let inodes = self.max_inodes.load(Ordering::Relaxed);
        if self.is_ramfs() {
            if self.root_mode != 0o755 {
                try_write!(text, ",mode={:o}", self.root_mode)?;
            }
            return Ok(text);
        }
        if shown(0) {
            try_write!(text, ",size={}k", pages.saturating_mul(PAGE / 1024))?;
        }
        if shown(1) {
            try_write!(text, ",nr_inodes={inodes}")?;
        }
        if self.root_mode != 0o1777 {
            try_write!(text, ",mode={:03o}", self.root_mode)?;
        }
        if self.root_owner.uid != 0 {
            try_write!(text, ",uid={}", self.root_owner.uid)?;
        }
        if self.root_owner.gid != 0 {
            try_write!(text, ",gid={}", self.root_owner.gid)?;
        }
        text.try_push_str(",inode64")?;
        Ok(text)
    }

    fn remount(&self, options: &[u8]) -> Result<()> {
        if self.is_ramfs() {
            return Options::of_ramfs(options).map(drop);
        }
        let options = Options::parse(options)?;
        if let Some(pages) = options.pages {
            if pages != 0 && pages < self.pages.load(Ordering::Relaxed) {
                return Err(Errno::EINVAL);
            }
            self.max_pages.store(pages, Ordering::Relaxed);
            self.shown[0].store(1, Ordering::Relaxed);
        }
        if let Some(inodes) = options.inodes {
            if inodes != 0 && inodes < self.inodes() {
                return Err(Errno::EINVAL);
            }
            self.max_inodes.store(inodes, Ordering::Relaxed);
            self.shown[1].store(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
