//! [`Index`]: many entries, by cursor in a sparse array and by hash in buckets.
//!
//! The buckets grow by linear hashing (Litwin 1980): an entry that comes splits at most one bucket in two, and one that goes
//! joins at most two pairs. A bucket is the first cursor of a chain of entries.

use crate::OutOfMemory;
use crate::radix::Radix;

/// The cursor after the last of a chain; no entry has it.
const END: u64 = 0;

pub(crate) struct Slot<T> {
    hash: u32,
    /// The cursor of the next entry in the bucket.
    next: u64,
    pub(crate) child: T,
}

/// Many entries, in as many buckets or up to twice as many.
pub(crate) struct Index<T> {
    slots: Radix<Slot<T>>,
    heads: Radix<u64>,
    buckets: u64,
    len: u64,
}

/// Which of so many buckets holds a hash.
#[inline]
const fn bucket_of(hash: u32, buckets: u64) -> u64 {
    let all = buckets.next_power_of_two();
    let bucket = hash as u64 & (all - 1);
    // What a bucket that is not there yet will hold is in the one that it will be split from.
    if bucket < buckets { bucket } else { bucket - all / 2 }
}

/// Which bucket the last of so many, at least two, was split from.
const fn origin_of_last(buckets: u64) -> u64 {
    buckets - 1 - buckets.next_power_of_two() / 2
}

impl<T> Index<T> {
    /// An empty one; allocates nothing.
    pub(crate) const fn new() -> Self {
        Self { slots: Radix::new(), heads: Radix::new(), buckets: 0, len: 0 }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let mut at = *self.heads.get_made(bucket_of(hash, self.buckets))?;
        while at != END {
            let slot = self.slots.get_made(at)?;
            if slot.hash == hash && is_it(&slot.child) {
                return Some(&slot.child);
            }
            at = slot.next;
        }
        None
    }

    /// Makes room for the `nth` entry from now on, at `cursor`.
    pub(crate) fn reserve(&mut self, cursor: u64, nth: u64) -> Result<(), OutOfMemory> {
        self.slots.make(cursor)?;
        // The bucket that it may add; one that is there has its place.
        self.heads.make(self.len + nth - 1)
    }

    /// Adds an entry, in the room that [`reserve`](Self::reserve) made.
    pub(crate) fn insert(&mut self, cursor: u64, hash: u32, child: T) {
        self.len += 1;
        if self.len > self.buckets {
            self.split();
        }
        let bucket = bucket_of(hash, self.buckets);
        let next = self.head(bucket);
        let place = self.slots.place(cursor);
        debug_assert!(place.is_some(), "no room was made");
        if let Some(place) = place {
            *place = Some(Slot { hash, next, child });
            self.set_head(bucket, cursor);
        }
    }

    /// Takes an entry out: its hash and child.
    pub(crate) fn remove(&mut self, cursor: u64) -> Option<(u32, T)> {
        let Slot { hash, next, child } = self.slots.remove(cursor)?;
        let bucket = bucket_of(hash, self.buckets);
        let mut at = self.head(bucket);
        if at == cursor {
            self.set_head(bucket, next);
        }
        while let Some(slot) = self.slot(at) {
            at = slot.next;
            if at == cursor {
                slot.next = next;
            }
        }
        self.len -= 1;
        while self.buckets > 1 && self.buckets > 2 * self.len {
            self.join();
        }
        Some((hash, child))
    }

    pub(crate) fn child_mut(&mut self, cursor: u64) -> Option<&mut T> {
        self.slot(cursor).map(|slot| &mut slot.child)
    }

    /// The places of the next entries whose cursors are at least `from`, and the cursor of the first place.
    #[inline]
    pub(crate) fn places(&self, from: u64) -> Option<(u64, &[Option<Slot<T>>])> {
        self.slots.places(from)
    }

    /// The least cursor.
    pub(crate) fn first(&self) -> Option<u64> {
        // A leaf that holds nothing may be there for an entry to come.
        let mut from = 0;
        loop {
            let (first, places) = self.places(from)?;
            match (first..).zip(places).find(|(_, place)| place.is_some()) {
                Some((cursor, _)) => return Some(cursor),
                None => from = first + places.len() as u64,
            }
        }
    }

    #[inline]
    fn slot(&mut self, cursor: u64) -> Option<&mut Slot<T>> {
        self.slots.place(cursor)?.as_mut()
    }

    fn head(&self, bucket: u64) -> u64 {
        self.heads.get(bucket).copied().unwrap_or(END)
    }

    fn set_head(&mut self, bucket: u64, cursor: u64) {
        if let Some(place) = self.heads.place(bucket) {
            *place = Some(cursor);
        }
    }

    /// Adds a bucket, and moves what belongs there out of the one that it is split from.
    fn split(&mut self) {
        let new = self.buckets;
        self.buckets += 1;
        let (mut stay, mut go) = (END, END);
        if new > 0 {
            let old = origin_of_last(self.buckets);
            let (mut at, buckets) = (self.head(old), self.buckets);
            while let Some(slot) = self.slot(at) {
                let chain = if bucket_of(slot.hash, buckets) == new { &mut go } else { &mut stay };
                let next = core::mem::replace(&mut slot.next, *chain);
                *chain = core::mem::replace(&mut at, next);
            }
            self.set_head(old, stay);
        }
        self.set_head(new, go);
    }

    /// Removes the last bucket, of at least two, and joins its chain to that of the one that it was split from.
    fn join(&mut self) {
        let into = origin_of_last(self.buckets);
        self.buckets -= 1;
        let first = self.heads.remove(self.buckets).unwrap_or(END);
        let rest = self.head(into);
        let mut at = first;
        while let Some(slot) = self.slot(at) {
            at = slot.next;
            if at == END {
                slot.next = rest;
            }
        }
        if first != END {
            self.set_head(into, first);
        }
    }
}
