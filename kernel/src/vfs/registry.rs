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

/// Every name, for /proc/filesystems.
pub fn names() -> Result<Vec<&'static str>> {
    KINDS.lock().iter().map(|(name, _)| *name).try_to_vec()
}
