//! The extended attributes of one tmpfs object.
//!
//! Owns the map. Each attribute is charged to the instance's inodes, as on Linux: it takes kernel memory too.
//!
//! Locks: `Inode`, for the map; values are shared, so that it is never held while user memory is touched.
#![forbid(unsafe_code)]

use super::tmpfs::Tmpfs;
use crate::mm::fallible::{TryMap, try_arc, try_box, try_copy};
use crate::sync::{SpinLock, level};
use crate::vfs::object::inode::{XattrFlags, XattrValue};
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

type Map = BTreeMap<Vec<u8>, XattrValue>;

/// Names and values; most objects have none.
#[derive(Default)]
pub struct Xattrs(SpinLock<Option<Box<Map>>, level::Inode>);

/// What an attribute is charged, in bytes, as Linux counts it.
fn space(name: &[u8], value: &[u8]) -> u64 {
    (40 + name.len() + value.len()) as u64
}

impl Xattrs {
    /// The value of `name`; ENODATA.
    pub fn get(&self, name: &[u8]) -> Result<XattrValue> {
        let map = self.0.lock();
        map.as_ref().and_then(|map| map.get(name)).cloned().ok_or(Errno::ENODATA)
    }

    /// Calls `each` with all names, in Linux's order: the last first.
    pub fn names(&self, each: &mut dyn FnMut(&[u8])) {
        if let Some(map) = &*self.0.lock() {
            map.keys().rev().for_each(|name| each(name));
        }
    }

    /// Gives `name` a value: EEXIST or ENODATA as `flags` demand, ENOSPC, ENOMEM.
    pub fn set(&self, fs: &Tmpfs, name: &[u8], value: Vec<u8>, flags: XattrFlags) -> Result<()> {
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let (charge, value) = (space(name, &value), try_arc(value)?);
        let (key, fresh) = (try_copy(name)?, try_box(Map::new())?);
        fs.charge_space(charge)?;
        let replaced = {
            let mut map = self.0.lock();
            let map = map.get_or_insert(fresh);
            match map.contains_key(name) {
                true if flags.contains(XattrFlags::CREATE) => Err(Errno::EEXIST),
                false if flags.contains(XattrFlags::REPLACE) => Err(Errno::ENODATA),
                _ => map.try_put(key, value),
            }
        };
        match &replaced {
            Ok(Some(old)) => fs.uncharge_space(space(name, old)),
            Ok(None) => {}
            Err(_) => fs.uncharge_space(charge),
        }
        replaced.map(drop)
    }

    /// Takes `name` away; ENODATA.
    pub fn remove(&self, fs: &Tmpfs, name: &[u8]) -> Result<()> {
        let removed = self.0.lock().as_mut().and_then(|map| map.remove(name));
        let removed = removed.ok_or(Errno::ENODATA)?;
        fs.uncharge_space(space(name, &removed));
        Ok(())
    }

    /// Gives back what all of them are charged; the object goes.
    pub fn uncharge_all(&mut self, fs: &Tmpfs) {
        if let Some(map) = self.0.get_mut() {
            map.iter().for_each(|(name, value)| fs.uncharge_space(space(name, value)));
        }
    }
}
