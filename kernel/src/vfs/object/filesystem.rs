//! [`FileSystem`] and [`Super`]: a mounted instance of a file system.
//!
//! A `Super` owns the tree of dentries below its root; when its last mount and open file are gone, the tree is taken
//! apart, unless the kernel itself keeps the tree for ever. Owns the anonymous device numbers in use too; 0:0 is never
//! given out. Locks: `Leaf`, for these.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use super::types::DevId;
use crate::mm::fallible::{TryGrow, try_arc};
use crate::sync::{SpinLock, level};
use abi::fs::Statfs;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};

/// The operations of a file system as a whole.
pub trait FileSystem: Send + Sync {
    /// The name in /proc/filesystems and in the third column of /proc/mounts.
    fn name(&self) -> &'static str;
    /// What `statfs` reports.
    fn statfs(&self) -> Statfs;
    /// Mount options of its own, each with a leading comma.
    fn options(&self) -> Result<String> {
        Ok(String::new())
    }
    /// New options for a remount.
    fn remount(&self, _options: &[u8]) -> Result<()> {
        Ok(())
    }
}

bitflags! {
    /// Flags of a whole instance, with the values of `MS_*`. All but `RDONLY` are shown and change nothing: a file system
    /// that is only in memory has nothing to write back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SuperFlags: u32 {
        const RDONLY = 1;
        const SYNCHRONOUS = 16;
        const MANDLOCK = 64;
        const DIRSYNC = 128;
        const LAZYTIME = 1 << 25;
    }
}

impl SuperFlags {
    /// Those that a remount can change.
    pub const OF_REMOUNT: Self = Self::all().difference(Self::DIRSYNC);
}

/// One instance.
pub struct Super {
    fs: Arc<dyn FileSystem>,
    root: Arc<Dentry>,
    dev: AnonymousDev,
    /// Relaxed: a call that misses a remount came before it.
    flags: AtomicU32,
    lives_for_ever: bool,
}

impl Super {
    /// An instance with `root`; `lives_for_ever` for trees that the kernel itself keeps.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        root: Arc<Dentry>,
        dev: AnonymousDev,
        lives_for_ever: bool,
    ) -> Result<Arc<Self>> {
        try_arc(Self { fs, root, dev, flags: AtomicU32::new(0), lives_for_ever })
    }

    /// The file system.
    pub fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }
    /// Its root.
    pub fn root(&self) -> &Arc<Dentry> {
        &self.root
    }
    /// Its device number.
    pub fn dev(&self) -> DevId {
        self.dev.id()
    }
    /// Whether the whole instance is read-only.
    pub fn read_only(&self) -> bool {
        self.flags().contains(SuperFlags::RDONLY)
    }
    /// Its flags.
    pub fn flags(&self) -> SuperFlags {
        SuperFlags::from_bits_truncate(self.flags.load(Ordering::Relaxed))
    }
    /// Sets those of its flags that are in `which` to what they are in `flags`.
    pub fn set_flags(&self, flags: SuperFlags, which: SuperFlags) {
        let new = self.flags().difference(which) | (flags & which);
        // Only a holder of the mutex that orders changes of the mount tree calls this (`ops::mounting`).
        self.flags.store(new.bits(), Ordering::Relaxed);
    }
    /// Whether the kernel itself keeps it: the same instance wherever it is mounted.
    pub fn lives_for_ever(&self) -> bool {
        self.lives_for_ever
    }
}

impl Drop for Super {
    fn drop(&mut self) {
        if !self.lives_for_ever {
            self.root.tear_down();
            crate::vfs::notify::unmounted(self.dev());
        }
    }
}

/// A bitmap of the minor numbers of anonymous devices (major 0) in use. As on Linux, the lowest free one is given out.
static ANON_DEVS: SpinLock<alloc::vec::Vec<u64>, level::Leaf> =
    SpinLock::new(alloc::vec::Vec::new());

/// The device number of a file system that is on no device: nobody else has it while this lives.
pub struct AnonymousDev(DevId);

impl AnonymousDev {
    /// The number.
    pub fn id(&self) -> DevId {
        self.0
    }
}

/// The lowest free anonymous device number.
pub fn anonymous_dev() -> Result<AnonymousDev> {
    lowest_free().map(AnonymousDev)
}

fn lowest_free() -> Result<DevId> {
    let mut words = ANON_DEVS.lock();
    for (at, word) in words.iter_mut().enumerate() {
        let free = word.trailing_ones();
        if free < 64 {
            *word |= 1 << free;
            // A bitmap of at most a few words: no overflow.
            return Ok(DevId::new(0, (at as u32) * 64 + free));
        }
    }
    words.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    let at = words.len() as u32;
    // Minor 0 is never handed out: device 0:0 means "none".
    words.try_push(if at == 0 { 0b11 } else { 0b1 })?;
    Ok(DevId::new(0, if at == 0 { 1 } else { at * 64 }))
}

impl Drop for AnonymousDev {
    fn drop(&mut self) {
        let minor = self.0.minor() as usize;
        if let Some(word) = ANON_DEVS.lock().get_mut(minor / 64) {
            *word &= !(1 << (minor % 64));
        }
    }
}
