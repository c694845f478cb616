//! [`Names`]: a short list, or an index.

use crate::OutOfMemory;
use crate::index::{Index, Slot};
use alloc::vec::Vec;
use core::ops::ControlFlow;
use core::slice;

/// So many are searched in place.
const SMALL: usize = 12;
/// Cursors 0 and 1 are left to `.` and `..`.
const FIRST_CURSOR: u64 = 2;

/// The names of one directory, each with a `T`. Each new name gets a greater cursor than all before it, so a cursor stays valid
/// whatever is added or removed.
pub struct Names<T> {
    form: Form<T>,
    next_cursor: u64,
}

/// Room for one more name in the table that made it, until one is added or removed there.
pub struct Reserved {
    cursor: u64,
}

enum Form<T> {
    /// In the order of their cursors.
    Small(Vec<Entry<T>>),
    Large(Index<T>),
}

struct Entry<T> {
    cursor: u64,
    hash: u32,
    child: T,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Names<T> {
    /// An empty table; allocates nothing.
    pub const fn new() -> Self {
        Self { form: Form::Small(Vec::new()), next_cursor: FIRST_CURSOR }
    }

    /// The cursor that the next name gets: above all that are there.
    pub const fn end(&self) -> u64 {
        self.next_cursor
    }

    /// Whether no name is in it.
    pub const fn is_empty(&self) -> bool {
        match &self.form {
            Form::Small(list) => list.is_empty(),
            Form::Large(index) => index.len() == 0,
        }
    }

    /// The child with that hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        match &self.form {
            Form::Small(list) => {
                let found = list.iter().find(|entry| entry.hash == hash && is_it(&entry.child));
                found.map(|entry| &entry.child)
            }
            Form::Large(index) => index.find(hash, is_it),
        }
    }

    /// Makes room for one more.
    pub fn reserve(&mut self) -> Result<Reserved, OutOfMemory> {
        self.make_room()?;
        Ok(Reserved { cursor: self.next_cursor })
    }

    fn make_room(&mut self) -> Result<(), OutOfMemory> {
        match &mut self.form {
            Form::Small(list) if list.len() < SMALL => list.try_reserve(1).map_err(|_| OutOfMemory),
            Form::Small(list) => {
                let mut index = Index::new();
                for (nth, entry) in (1..).zip(&*list) {
                    index.reserve(entry.cursor, nth)?;
                }
                index.reserve(self.next_cursor, list.len() as u64 + 1)?;
                for entry in list.drain(..) {
                    index.insert(entry.cursor, entry.hash, entry.child);
                }
                self.form = Form::Large(index);
                Ok(())
            }
            Form::Large(index) => index.reserve(self.next_cursor, 1),
        }
    }

    /// Adds a name that is not there; returns its cursor.
    pub fn insert(&mut self, hash: u32, child: T) -> Result<u64, OutOfMemory> {
        let room = self.reserve()?;
        Ok(self.insert_reserved(room, hash, child))
    }

    /// As [`insert`](Self::insert), in the room that [`reserve`](Self::reserve) made.
    pub fn insert_reserved(&mut self, room: Reserved, hash: u32, child: T) -> u64 {
        let cursor = self.next_cursor;
        debug_assert_eq!(room.cursor, cursor, "room that another has taken");
        self.next_cursor += 1;
        match &mut self.form {
            Form::Small(list) => {
                debug_assert!(list.len() < list.capacity(), "no room was made");
                list.push(Entry { cursor, hash, child });
            }
            Form::Large(index) => index.insert(cursor, hash, child),
        }
        cursor
    }

    /// Removes the child at `cursor`.
    pub fn remove(&mut self, cursor: u64) -> Option<T> {
        match &mut self.form {
            Form::Small(list) => {
                let at = list.binary_search_by_key(&cursor, |entry| entry.cursor).ok()?;
                let child = list.remove(at).child;
                if list.is_empty() {
                    *list = Vec::new();
                }
                Some(child)
            }
            Form::Large(index) => {
                let (_, child) = index.remove(cursor)?;
                if let Some(list) = short_list(index) {
                    self.form = Form::Small(list);
                }
                Some(child)
            }
        }
    }

    /// Removes the first child in the order of their cursors.
    pub fn remove_first(&mut self) -> Option<T> {
        let cursor = match &self.form {
            Form::Small(list) => list.first()?.cursor,
            Form::Large(index) => index.first()?,
        };
        self.remove(cursor)
    }

    /// Puts `child` in the place of the one at `cursor`, whose hash it has; gives the old one back.
    pub fn replace(&mut self, cursor: u64, child: T) -> Option<T> {
        let place = match &mut self.form {
            Form::Small(list) => {
                let at = list.binary_search_by_key(&cursor, |entry| entry.cursor).ok()?;
                &mut list[at].child
            }
            Form::Large(index) => index.child_mut(cursor)?,
        };
        Some(core::mem::replace(place, child))
    }

    /// Calls `visit` with the cursor of each child that is at least `from`, and the child, in order, until it breaks.
    #[inline]
    pub fn visit<B>(
        &self,
        from: u64,
        mut visit: impl FnMut(u64, &T) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut next = Some(from);
        while let Some(mut run) = next.and_then(|from| self.run(from)) {
            // One call for both forms: it becomes part of the loop.
            while let Some((cursor, child)) = run.next() {
                visit(cursor, child)?;
            }
            next = run.end();
        }
        ControlFlow::Continue(())
    }

    /// The next children whose cursors are at least `from`.
    #[inline]
    fn run(&self, from: u64) -> Option<Run<'_, T>> {
        match &self.form {
            Form::Small(list) => {
                let start = list.partition_point(|entry| entry.cursor < from);
                Some(Run::List(list[start..].iter()))
            }
            Form::Large(index) => {
                let (first, places) = index.places(from)?;
                Some(Run::Places(first, places.iter()))
            }
        }
    }
}

/// Children that lie together.
enum Run<'a, T> {
    List(slice::Iter<'a, Entry<T>>),
    /// With the cursor of the next place.
    Places(u64, slice::Iter<'a, Option<Slot<T>>>),
}

impl<'a, T> Run<'a, T> {
    #[inline]
    fn next(&mut self) -> Option<(u64, &'a T)> {
        match self {
            Self::List(entries) => entries.next().map(|entry| (entry.cursor, &entry.child)),
            Self::Places(next, places) => loop {
                let place = places.next()?;
                let cursor = *next;
                *next = cursor.wrapping_add(1);
                if let Some(slot) = place {
                    return Some((cursor, &slot.child));
                }
            },
        }
    }

    /// Where the children behind it begin; none if they were all.
    fn end(&self) -> Option<u64> {
        match self {
            Self::List(_) => None,
            Self::Places(next, _) => Some(*next),
        }
    }
}

/// What is left in the index as a list, if it is little and there is room for it.
fn short_list<T>(index: &mut Index<T>) -> Option<Vec<Entry<T>>> {
    let mut list = Vec::new();
    if index.len() > SMALL as u64 / 2 || list.try_reserve(index.len() as usize).is_err() {
        return None;
    }
    while let Some(cursor) = index.first()
        && let Some((hash, child)) = index.remove(cursor)
    {
        list.push(Entry { cursor, hash, child });
    }
    Some(list)
}
