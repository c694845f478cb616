//! [`Table`]: the objects of one kind, by identifier and by key.
//!
//! Owns a reference to each object until it is removed. Never frees one: who removes it drops it with nothing locked.
//! Locks: those of its user, at level `SysvTable`.

use crate::mm::fallible::{Room, TryMap};
use abi::ipc::{IPC_PRIVATE, get as flag};
use abi::{Errno, Result};
use alea_sysv::numbers::{Numbers, index_of};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// What has an identifier.
pub trait Object {
    fn id(&self) -> i32;
}

pub struct Table<T> {
    numbers: Numbers,
    by_index: BTreeMap<u16, Arc<T>>,
    by_key: BTreeMap<i32, u16>,
}

/// The identifier of the object with this key, or of a new one, as `flags` say. `found` takes one that `look` saw: `None` if it is
/// going, and its key is free by now. `make` makes one: `None` if its key was taken meanwhile. `ENOENT`, `EEXIST`.
pub fn find_or_make<T>(
    key: i32,
    flags: u32,
    look: impl Fn() -> Option<Arc<T>>,
    found: impl Fn(&T) -> Result<Option<i32>>,
    make: impl Fn() -> Result<Option<i32>>,
) -> Result<i32> {
    let (creates, excludes) = (flags & flag::CREAT != 0, flags & flag::EXCL != 0);
    loop {
        let there = if key == IPC_PRIVATE { None } else { look() };
        let id = match there {
            Some(_) if creates && excludes => return Err(Errno::EEXIST),
            Some(object) => found(&object)?,
            None if creates || key == IPC_PRIVATE => make()?,
            None => return Err(Errno::ENOENT),
        };
        if let Some(id) = id {
            return Ok(id);
        }
    }
}

impl<T: Object> Table<T> {
    pub const fn new() -> Self {
        Self { numbers: Numbers::new(), by_index: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    /// The object with this identifier; `EINVAL`.
    pub fn get(&self, id: i32) -> Result<Arc<T>> {
        if id < 0 {
            return Err(Errno::EINVAL);
        }
        let found = self.by_index.get(&index_of(id)).filter(|object| object.id() == id);
        found.cloned().ok_or(Errno::EINVAL)
    }

    /// The object whose identifier has this index; `EINVAL`.
    pub fn at(&self, index: i32) -> Result<Arc<T>> {
        let index = u16::try_from(index & 0x7fff).map_err(|_| Errno::EINVAL)?;
        self.by_index.get(&index).cloned().ok_or(Errno::EINVAL)
    }

    /// The first object at this index or a higher one, and its index.
    pub fn first_from(&self, index: u16) -> Option<(u16, Arc<T>)> {
        self.by_index.range(index..).next().map(|(&index, object)| (index, object.clone()))
    }

    /// The object with this key.
    pub fn by_key(&self, key: i32) -> Option<Arc<T>> {
        self.by_key.get(&key).and_then(|index| self.by_index.get(index)).cloned()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.used()
    }

    /// The highest index in use; 0 if there is none.
    pub fn highest(&self) -> i32 {
        self.numbers.highest().map_or(0, |index| index as i32)
    }

    /// Adds an object with a key that no other has; `wish` is the identifier that it is to have, or -1;
    /// the caller sets it back to that. `ENOSPC` beyond `limit`, `ENOMEM`.
    pub fn add(
        &mut self,
        key: i32,
        limit: i32,
        wish: i32,
        room: Room<T>,
        make: impl FnOnce(i32) -> T,
    ) -> Result<Arc<T>> {
        let limit = usize::try_from(limit).unwrap_or(0);
        if self.numbers.used() >= limit {
            return Err(Errno::ENOSPC);
        }
        let wished = Some(wish).filter(|&wish| wish >= 0);
        let id = self.numbers.take(limit, wished).ok_or(Errno::ENOSPC)?;
        let object = room.arc(make(id));
        let mut entered = self.by_index.try_put(index_of(id), object.clone()).map(drop);
        if entered.is_ok() && key != IPC_PRIVATE {
            entered = self.by_key.try_put(key, index_of(id)).map(drop);
        }
        if let Err(error) = entered {
            self.by_index.remove(&index_of(id));
            self.numbers.give_back(id);
            return Err(error);
        }
        Ok(object)
    }

    /// The key names nothing any more, if it named `object`.
    pub fn forget_key(&mut self, key: i32, object: &T) {
        if self.by_key.get(&key) == Some(&index_of(object.id())) {
            self.by_key.remove(&key);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, key: i32, object: &T) -> Option<Arc<T>> {
        self.forget_key(key, object);
        let index = index_of(object.id());
        self.by_index.get(&index).filter(|found| found.id() == object.id())?;
        self.numbers.give_back(object.id());
        self.by_index.remove(&index)
    }
}
