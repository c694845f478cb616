//! Device nodes: which driver stands behind a device number, and the devtmpfs that shows them in /dev.
//!
//! devtmpfs is one tmpfs instance for the whole machine; every registered device gets its node there at
//! once, and its folder in sysfs, from which mdev makes nodes. Lock level: `Leaf` for the registry.
#![forbid(unsafe_code)]

mod kmsg;
mod mem;

use crate::mm::fallible::TryCollect;
pub use kmsg::log_readers;

use super::cred::Cred;
use super::dentry::Dentry;
use super::file::FileOps;
use super::filesystem::Super;
use super::inode::Owner;
use super::sysfs;
use super::tmpfs::{Options, Tmpfs};
use super::types::{DevId, FileType};
use crate::sync::{Once, SpinLock, level};
use abi::fs::{OpenFlags, S_IFCHR, S_IFDIR};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A character device driver.
pub trait CharDriver: Send + Sync {
    /// Opens one of its devices.
    fn open(&self, minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>>;

    /// The length of transfers that suits it best, in bytes: `st_blksize` of its nodes, and so how much stdio
    /// asks for at once.
    fn block_size(&self) -> u32 {
        4096
    }
}

struct Entry {
    driver: Arc<dyn CharDriver>,
    /// Path below /dev.
    name: &'static str,
}

static CHARS: SpinLock<BTreeMap<DevId, Entry>, level::Leaf> = SpinLock::new(BTreeMap::new());
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
    // Without memory for a node at boot there is no boot; mknod still reaches the driver.
    let _ = add_node(name, S_IFCHR | (mode & 0o777), dev);
    let _ = sysfs::register_device(dev, name, mode);
}

/// Drivers of whole majors, whose nodes are elsewhere (devpts).
static MAJORS: SpinLock<BTreeMap<u32, Arc<dyn CharDriver>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());

/// Registers the driver of all devices of a major that have none of their own; makes no nodes.
#[expect(clippy::disallowed_methods, reason = "boot: before any user")]
pub fn register_major(major: u32, driver: Arc<dyn CharDriver>) {
    MAJORS.lock().insert(major, driver);
}

fn driver(dev: DevId) -> Option<Arc<dyn CharDriver>> {
    let own = CHARS.lock().get(&dev).map(|entry| entry.driver.clone());
    own.or_else(|| MAJORS.lock().get(&dev.major()).cloned())
}

/// Opens the device that a node names: ENXIO without a driver.
pub fn open_char(dev: DevId, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
    driver(dev).ok_or(Errno::ENXIO)?.open(dev.minor(), flags)
}

/// `st_blksize` of the nodes of a device.
pub fn block_size(dev: DevId) -> u32 {
    driver(dev).map_or(4096, |driver| driver.block_size())
}

/// Every registered device, for /proc/devices.
pub fn char_devices() -> Result<Vec<(DevId, &'static str)>> {
    CHARS.lock().iter().map(|(dev, entry)| (*dev, entry.name)).try_to_vec()
}

/// The instance.
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

/// Registers null, zero, full and kmsg.
pub fn init() {
    mem::register();
    kmsg::register();
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
