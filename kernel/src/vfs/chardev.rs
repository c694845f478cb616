//! Character devices by number: the driver of each device node.
//!
//! Owns the two registries. Must never call a driver with a lock held. Locks: `Leaf`, one for each registry.

use super::object::file::FileOps;
use super::object::types::DevId;
use crate::mm::fallible::TryCollect;
use crate::sync::{SpinLock, level};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A character device driver.
pub trait CharDriver: Send + Sync {
    /// Opens one of its devices.
    fn open(&self, minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>>;

    /// The preferred length of transfers, in bytes: `st_blksize` of its nodes, and so how much stdio
    /// reads or writes at once.
    fn block_size(&self) -> u32 {
        4096
    }
}

pub struct Entry {
    pub driver: Arc<dyn CharDriver>,
    /// Path below /dev.
    pub name: &'static str,
}

pub static CHARS: SpinLock<BTreeMap<DevId, Entry>, level::Leaf> = SpinLock::new(BTreeMap::new());

/// Drivers of whole major numbers, whose nodes are not in devtmpfs (devpts).
static MAJORS: SpinLock<BTreeMap<u32, Arc<dyn CharDriver>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());

/// Registers the driver of all devices with this major number that have none of their own; makes no nodes.
#[expect(clippy::disallowed_methods, reason = "boot: before any user")]
pub fn register_major(major: u32, driver: Arc<dyn CharDriver>) {
    MAJORS.lock().insert(major, driver);
}

pub fn driver(dev: DevId) -> Option<Arc<dyn CharDriver>> {
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

/// Every device that is registered by itself, for /proc/devices; not those of [`register_major`].
pub fn char_devices() -> Result<Vec<(DevId, &'static str)>> {
    CHARS.lock().iter().map(|(dev, entry)| (*dev, entry.name)).try_to_vec()
}
