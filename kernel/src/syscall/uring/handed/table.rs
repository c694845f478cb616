//! [`Files`]: the files that a ring knows by number, and which numbers are given out.
//!
//! Owns the files. Never drops one: whoever takes it away does, with the table unlocked. Locks: none of its own.

use crate::sync::Pace;
use crate::vfs::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// A ring's files by number.
#[derive(Default)]
pub struct Files {
    places: Vec<Option<Arc<OpenFile>>>,
    /// Which places are given out to who wants any, and where to look first.
    range: Range<usize>,
    hint: usize,
    /// A free place that is not given out, as a file is to come there.
    promised: Option<usize>,
}

impl Files {
    /// All places that are free are given out.
    pub fn new(places: Vec<Option<Arc<OpenFile>>>) -> Self {
        let range = 0..places.len();
        Self { places, range, hint: 0, promised: None }
    }

    /// How many places there are; none without a table.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The file of that number.
    pub fn get(&self, number: i32) -> Option<Arc<OpenFile>> {
        self.places.get(usize::try_from(number).ok()?)?.clone()
    }

    /// `ENXIO` without a table.
    pub fn check(&self) -> Result<()> {
        if self.places.is_empty() { Err(Errno::ENXIO) } else { Ok(()) }
    }

    /// Gives out the places of this range.
    pub fn set_range(&mut self, range: Range<usize>) {
        self.hint = range.start;
        self.range = range;
    }

    /// A free place of the range, from the hint on and then from its beginning: `ENFILE` if there is none, as without a table.
    pub fn free_place(&self) -> Result<usize> {
        let Range { start, end } = self.range;
        let hint = self.hint.clamp(start, end);
        let (first, then) = (hint..end, start..hint);
        let is_free = |at: &usize| {
            self.promised != Some(*at) && self.places.get(*at).is_some_and(Option::is_none)
        };
        first.chain(then).paced().find(is_free).ok_or(Errno::ENFILE)
    }

    /// Gives this place to nobody else who wants any, until the promise is kept or taken back with `None`.
    pub fn promise(&mut self, at: Option<usize>) {
        self.promised = at;
    }

    /// Puts a file there; what was there before, to be dropped with the table unlocked.
    pub fn put(&mut self, at: usize, file: Arc<OpenFile>) -> Option<Arc<OpenFile>> {
        let Some(place) = self.places.get_mut(at) else { return Some(file) };
        let old = place.replace(file);
        if old.is_none() {
            self.hint = at + 1;
        }
        old
    }

    /// Takes away what is there, likewise.
    pub fn take(&mut self, at: usize) -> Option<Arc<OpenFile>> {
        let old = self.places.get_mut(at)?.take();
        if old.is_some() {
            self.hint = at;
        }
        old
    }
}
