//! tracefs: the tracepoints, a directory each, where perf looks for them. Made of the same fixed entries as proc.
//!
//! Owns the one instance, and the slot for the function that knows the tracepoints. Never makes a file before the first
//! mount. Locks: a mutex, held while the files are made.
#![forbid(unsafe_code)]

use super::procfs::{ProcFile, fixed};
use super::sysfs::Root;
use crate::mm::fallible::try_arc;
use crate::sync::{Mutex, Once};
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::{Dentry, DevId, InodeAttr, Owner, Super, Timestamp};
use abi::Result;
use abi::fs::S_IFDIR;
use alloc::sync::Arc;

const MAGIC: i64 = 0x7472_6163;

/// Makes the files.
pub type Fill = fn(&Arc<Super>) -> Result<()>;

static FILL: Once<Fill> = Once::new();
static TRACEFS: Once<Arc<Super>> = Once::new();

/// Fills the slot and registers the file system; called once at boot.
pub fn register(fill: Fill) {
    FILL.call_once(|| fill);
    crate::vfs::registry::register("tracefs", |_| super_block());
}

/// The one instance, with all files.
fn super_block() -> Result<Arc<Super>> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    if let Some(sb) = TRACEFS.get() {
        return Ok(sb.clone());
    }
    let number = anonymous_dev()?;
    let dev = number.id();
    let (owner, mode) = (Owner::default(), S_IFDIR | 0o700);
    let attr = InodeAttr::new(dev, 1, mode, owner, DevId::NONE, Timestamp::now());
    let root = Dentry::new_root(try_arc(Root { attr })?, b"/")?;
    let fs = try_arc(fixed::KernelFs { name: "tracefs", magic: MAGIC })?;
    let sb = Super::new(fs, root, number, true)?;
    if let Some(fill) = FILL.get() {
        fill(&sb)?;
    }
    Ok(TRACEFS.call_once(|| sb).clone())
}

/// Adds an empty directory, `path` below the mount.
pub fn add_directory(sb: &Arc<Super>, path: &str) -> Result<()> {
    fixed::directory(sb, path).map(drop)
}

/// Adds a file, `path` below the mount.
pub fn add_file(sb: &Arc<Super>, path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    fixed::add_file(sb, path, mode, file)
}
