//! Which file systems can be mounted.
//!
//! Owns the list, filled at boot. Never forgets one. Locks: `Leaf`, not held while an instance is made.
#![forbid(unsafe_code)]

use super::object::filesystem::Super;
use crate::mm::fallible::TryCollect;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Makes (or finds) an instance from the options of `mount`.
pub type Mounter = fn(options: &[u8]) -> Result<Arc<Super>>;

static KINDS: SpinLock<Vec<(&'static str, Mounter)>, level::Leaf> = SpinLock::new(Vec::new());

/// Makes `name` mountable.
pub fn register(name: &'static str, mounter: Mounter) {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    KINDS.lock().push((name, mounter));
}

/// An instance of the file system `name`; ENODEV if it is unknown.
pub fn instance(name: &[u8], options: &[u8]) -> Result<Arc<Super>> {
    let mounter = {
        let kinds = KINDS.lock();
        kinds.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, mounter)| *mounter)
    };
    mounter.ok_or(Errno::ENODEV)?(options)
}

/// Whether an option is of every file system.
pub fn is_common(option: &[u8]) -> bool {
    const COMMON: [&[u8]; 9] = [
        b"ro",
        b"rw",
        b"sync",
        b"async",
        b"dirsync",
        b"lazytime",
        b"nolazytime",
        b"mand",
        b"nomand",
    ];
    option.is_empty() || COMMON.contains(&option)
}

/// EINVAL for an option of a file system that has none of its own.
pub fn refuse_options(options: &[u8]) -> Result<()> {
    match options.split(|&byte| byte == b',').all(is_common) {
        true => Ok(()),
        false => Err(Errno::EINVAL),
    }
}

/// Every name, for /proc/filesystems.
pub fn names() -> Result<Vec<&'static str>> {
    KINDS.lock().iter().map(|(name, _)| *name).try_to_vec()
}
