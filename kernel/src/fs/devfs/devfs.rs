//! Device nodes: which driver stands behind a device number, and the devtmpfs that shows them in /dev.
//!
//! devtmpfs is one tmpfs instance for the whole machine; every registered device gets its node there at
//! once, and its folder in sysfs, from which mdev makes nodes. Owns that instance. Never takes
//! a driver back. Locks: none of its own; the registry of drivers is `vfs::chardev`'s.

use crate::vfs::chardev::{CHARS, CharDriver, Entry};

use crate::fs::sysfs;
use crate::fs::tmpfs::{Options, Tmpfs};
use crate::sync::Once;
use crate::vfs::{Dentry, DevId, Owner, Super};
use abi::Result;
use abi::fs::{S_IFCHR, S_IFDIR};
use alloc::sync::Arc;

static DEVTMPFS: Once<Arc<Super>> = Once::new();

/// Registers the driver of one device; `name` is its path below /dev, `mode` the node's permissions.
#[expect(clippy::disallowed_methods, reason = "boot: before any user")]
pub fn register_char(
    major: u32,
    minor: u32,
    name: &'static str,
    mode: u32,
    driver: Arc<dyn CharDriver>,
) {
    let dev = DevId::new(major, minor);
    CHARS.lock().insert(dev, Entry { driver, name });
    // A node that no memory was left for is no reason to fail: mknod still reaches the driver.
    let _ = add_node(name, S_IFCHR | (mode & 0o777), dev);
    let _ = sysfs::register_device(dev, name, mode);
}

/// The one instance, made when it is first asked for.
pub fn super_block() -> Result<Arc<Super>> {
    if let Some(sb) = DEVTMPFS.get() {
        return Ok(sb.clone());
    }
    // Half of all memory, as on Linux.
    let half = Some(crate::mm::frames::stats().total / 2);
    let options = Options { mode: Some(0o755), pages: half, inodes: half, ..Options::default() };
    let sb = Tmpfs::new_super("devtmpfs", &options, true)?;
    Ok(DEVTMPFS.call_once(|| sb).clone())
}

fn add_node(path: &str, mode: u32, dev: DevId) -> Result<()> {
    let sb = super_block()?;
    let mut dir = sb.root().clone();
    let mut rest = path;
    while let Some((name, tail)) = rest.split_once('/') {
        dir = match dir.lookup(name.as_bytes()) {
            Ok(child) => child,
            Err(_) => add_entry(&dir, name.as_bytes(), S_IFDIR | 0o755, DevId::NONE)?,
        };
        rest = tail;
    }
    match dir.lookup(rest.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => add_entry(&dir, rest.as_bytes(), mode, dev).map(drop),
    }
}

fn add_entry(dir: &Arc<Dentry>, name: &[u8], mode: u32, dev: DevId) -> Result<Arc<Dentry>> {
    let _changes = dir.lock_changes()?;
    let inode = dir.inode().create(name, mode, dev, Owner::default())?;
    let child = Dentry::new_below(dir, name, inode)?;
    dir.insert(&child)?;
    Ok(child)
}
