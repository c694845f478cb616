//! Device nodes: which driver stands behind a device number, and the devtmpfs that shows them in /dev.
//!
//! Lock level: `Leaf` for the registry.
#![forbid(unsafe_code)]

use super::file::FileOps;
use super::types::DevId;
use crate::sync::{SpinLock, level};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// A character device driver.
pub trait CharDriver: Send + Sync {
    /// Opens one of its devices.
    fn open(&self, minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>>;
}

struct Entry {
    driver: Arc<dyn CharDriver>,
    /// For /proc/devices.
    name: &'static str,
}

static CHARS: SpinLock<BTreeMap<DevId, Entry>, level::Leaf> = SpinLock::new(BTreeMap::new());

/// Registers the driver of one device; `name` is its path below /dev, `mode` the node's permissions.
pub fn register_char(
    major: u32,
    minor: u32,
    name: &'static str,
    _mode: u32,
    driver: Arc<dyn CharDriver>,
) {
    CHARS.lock().insert(DevId::new(major, minor), Entry { driver, name });
}

/// Opens the device that a node names: ENXIO without a driver.
pub fn open_char(dev: DevId, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
    let driver = CHARS.lock().get(&dev).map(|entry| entry.driver.clone()).ok_or(Errno::ENXIO)?;
    driver.open(dev.minor(), flags)
}
