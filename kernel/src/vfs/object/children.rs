//! [`Children`]: the entries of a directory, found by name in constant time and listed in the order of their cursors.
//!
//! Slots are kept in the order of their cursors, and each new slot gets a greater cursor than all before it, so a cursor
//! stays valid whatever is added or removed. Small directories are searched in place; larger ones have a hash index
//! over the slots.
//!
//! Owns the table, and the keys of the hash of names, which user space never sees. Locks: none of its own; a table is guarded
//! by its dentry's lock.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use hashbrown::HashTable;

/// Directories up to this many slots have no index.
const SMALL: usize = 12;
/// Cursors 0 and 1 are `.` and `..`.
const FIRST_CURSOR: u64 = 2;

/// The hash of a name, under random keys of this boot: so nobody can choose names with the same hash to make lookups in a
/// directory as slow as in a list. Nothing but the time of a lookup depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NameHash(u32);

/// Set by [`NameHash::set_keys`].
static KEYS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl NameHash {
    /// Chooses the keys. Before the first name, on the boot CPU.
    pub fn set_keys(keys: [u64; 2]) {
        // Relaxed: before another CPU runs.
        KEYS.iter().zip(keys).for_each(|(to, key)| to.store(key, Ordering::Relaxed));
    }

    /// Hashes sixteen bytes at a time, with one multiplication to 128 bits. A key is mixed into each factor, so that
    /// nobody can choose a name that makes one zero.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        // Relaxed: see `set_keys`.
        let [first, second] = KEYS.each_ref().map(|key| key.load(Ordering::Relaxed));
        debug_assert!(first | second != 0, "a name before the keys");
        let (mut rest, mut h) = (name, second.wrapping_add(name.len() as u64));
        while rest.len() > 16
            && let Some((pair, more)) = rest.split_first_chunk::<16>()
        {
            let (low, high) = ends(pair);
            h = fold(low ^ first, high ^ h);
            rest = more;
        }
        let (low, high) = ends(rest);
        let h = fold(low ^ first, high ^ h);
        Self((h >> 32) as u32 ^ h as u32)
    }

    /// Spread over 64 bits, as the index wants it.
    const fn wide(self) -> u64 {
        (self.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The two halves of the 128-bit product, XORed.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Up to sixteen bytes as two numbers, which together with the length determine the bytes.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)));
    }
    match bytes {
        [] => (0, 0),
        [first, .., last] => {
            let middle = bytes[bytes.len() / 2];
            (u64::from(*first) | u64::from(middle) << 8, u64::from(*last))
        }
        [only] => (u64::from(*only), 0),
    }
}

struct Slot {
    cursor: u64,
    hash: NameHash,
    child: Option<Arc<Dentry>>,
}

/// The names of one directory.
pub struct Children {
    slots: Vec<Slot>,
    index: HashTable<u32>,
    live: usize,
    next_cursor: u64,
}

impl Children {
    /// An empty table; allocates nothing.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), index: HashTable::new(), live: 0, next_cursor: FIRST_CURSOR }
    }

    /// The cursor that the next name gets: above all that are there.
    pub fn end(&self) -> u64 {
        self.next_cursor
    }

    /// Whether no name is in it.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The child with that hash for which `is_it` holds.
    #[inline]
    pub fn find(
        &self,
        hash: NameHash,
        mut is_it: impl FnMut(&Arc<Dentry>) -> bool,
    ) -> Option<&Arc<Dentry>> {
        if self.slots.len() <= SMALL {
            let of_hash = self.slots.iter().filter(|slot| slot.hash == hash);
            return of_hash.filter_map(|slot| slot.child.as_ref()).find(|child| is_it(child));
        }
        let at = self.index.find(hash.wide(), |&at| {
            let slot = &self.slots[at as usize];
            slot.hash == hash && slot.child.as_ref().is_some_and(&mut is_it)
        })?;
        self.slots[*at as usize].child.as_ref()
    }

    /// Makes room for one more.
    pub fn reserve(&mut self) -> Result<()> {
        if self.slots.len() > 2 * SMALL && self.live < self.slots.len() / 2 {
            self.compact();
        }
        if self.slots.len() >= u32::MAX as usize - 1 {
            return Err(Errno::ENOSPC);
        }
        self.slots.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        if self.slots.len() >= SMALL {
            let more = self.slots.len() + 1 - self.index.len();
            let slots = &self.slots;
            let hasher = |&at: &u32| slots[at as usize].hash.wide();
            self.index.try_reserve(more, hasher).map_err(|_| Errno::ENOMEM)?;
        }
        Ok(())
    }

    /// Adds a name that is not there; returns its cursor.
    pub fn insert(&mut self, hash: NameHash, child: Arc<Dentry>) -> Result<u64> {
        self.reserve()?;
        Ok(self.insert_reserved(hash, child))
    }

    /// As [`insert`](Self::insert), with the room that [`reserve`](Self::reserve) made and nothing has used since.
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    pub fn insert_reserved(&mut self, hash: NameHash, child: Arc<Dentry>) -> u64 {
        let cursor = self.next_cursor;
        self.next_cursor += 1;
        self.slots.push(Slot { cursor, hash, child: Some(child) });
        self.live += 1;
        if self.slots.len() == SMALL + 1 {
            self.rebuild_index();
        } else if self.slots.len() > SMALL {
            self.index_last(hash);
        }
        cursor
    }

    /// Removes the child at `cursor`.
    pub fn remove(&mut self, hash: NameHash, cursor: u64) -> Option<Arc<Dentry>> {
        let at = self.slots.binary_search_by_key(&cursor, |slot| slot.cursor).ok()?;
        let child = self.slots[at].child.take()?;
        self.live -= 1;
        if self.slots.len() > SMALL
            && let Ok(entry) = self.index.find_entry(hash.wide(), |&i| i as usize == at)
        {
            entry.remove();
        }
        if self.live == 0 {
            self.slots = Vec::new();
            self.index = HashTable::new();
        } else if self.slots.len() <= SMALL {
            self.slots.remove(at);
        }
        Some(child)
    }

    /// Puts `child` in the slot at `cursor`; it takes that slot's name.
    pub fn replace(&mut self, cursor: u64, child: Arc<Dentry>) {
        if let Ok(at) = self.slots.binary_search_by_key(&cursor, |slot| slot.cursor) {
            let old = self.slots[at].child.replace(child);
            // The caller holds a reference of its own: this is never the last.
            drop(old);
        }
    }

    /// The children with cursors of at least `from`, in order.
    pub fn from(&self, from: u64) -> impl Iterator<Item = (u64, &Arc<Dentry>)> {
        let start = self.slots.partition_point(|slot| slot.cursor < from);
        self.slots[start..].iter().filter_map(|slot| Some((slot.cursor, slot.child.as_ref()?)))
    }

    /// Drops the empty slots; order and cursors stay.
    fn compact(&mut self) {
        self.slots.retain(|slot| slot.child.is_some());
        self.index.clear();
        if self.slots.len() > SMALL {
            self.rebuild_index();
        }
    }

    /// Needs no new memory: `reserve` made room, or there were more slots before.
    fn rebuild_index(&mut self) {
        self.index.clear();
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.child.is_some() {
                let slots = &self.slots;
                self.index
                    .insert_unique(slot.hash.wide(), at as u32, |&i| slots[i as usize].hash.wide());
            }
        }
    }

    fn index_last(&mut self, hash: NameHash) {
        let slots = &self.slots;
        let at = slots.len() - 1;
        self.index.insert_unique(hash.wide(), at as u32, |&i| slots[i as usize].hash.wide());
    }
}
