//! [`FsContext`]: a process's root, working directory and umask; shared by `CLONE_FS`.
//!
//! Owns these three. Locks: `Leaf`, held only to copy a path in or out; a path that is replaced is never dropped under
//! it.
#![forbid(unsafe_code)]

use crate::sync::{SpinLock, level};
use crate::vfs::object::path::Path;
use core::sync::atomic::{AtomicU32, Ordering};

/// Where a process's path names start.
pub struct FsContext {
    places: SpinLock<Places, level::Leaf>,
    /// Relaxed: one word, and nothing else depends on it.
    umask: AtomicU32,
}

#[derive(Clone)]
struct Places {
    root: Path,
    cwd: Path,
}

impl FsContext {
    /// Root and working directory at `root`, umask 022.
    pub fn new(root: Path) -> Self {
        Self {
            places: SpinLock::new(Places { cwd: root.clone(), root }),
            umask: AtomicU32::new(0o022),
        }
    }

    /// A copy for a child that does not share it.
    pub fn fork(&self) -> Self {
        let places = self.places.lock().clone();
        Self { places: SpinLock::new(places), umask: AtomicU32::new(self.umask()) }
    }

    /// The root directory.
    #[inline]
    pub fn root(&self) -> Path {
        self.places.lock().root.clone()
    }
    /// The working directory.
    #[inline]
    pub fn cwd(&self) -> Path {
        self.places.lock().cwd.clone()
    }
    /// Changes the root directory.
    pub fn set_root(&self, root: Path) {
        let old = core::mem::replace(&mut self.places.lock().root, root);
        drop(old);
    }
    /// Changes the working directory.
    pub fn set_cwd(&self, cwd: Path) {
        let old = core::mem::replace(&mut self.places.lock().cwd, cwd);
        drop(old);
    }
    /// The permission bits that new files lose.
    #[inline]
    pub fn umask(&self) -> u32 {
        self.umask.load(Ordering::Relaxed)
    }
    /// Sets the umask, and returns the old one.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Ordering::Relaxed)
    }
}
