//! [`PageCache`]: the pages of one file or shared memory object, and its length.

use super::{Frame, Sink, Source};
use abi::Result;
use core::ops::Range;

/// A file system's limit on pages: asked before a page is added, told when pages go.
pub trait PageQuota: Send + Sync {
    /// Charges `pages` more; `ENOSPC` if the limit does not allow them.
    fn charge(&self, pages: u64) -> Result<()>;
    /// Gives back `pages`.
    fn uncharge(&self, pages: u64);
}

/// The pages of one file or shared memory object, and its length.
pub struct PageCache {}

impl PageCache {
    /// An empty cache of length 0 without a limit.
    pub fn new() -> Self {
        todo!()
    }

    /// An empty cache whose pages are charged to `quota`.
    pub fn with_quota(_quota: alloc::sync::Arc<dyn PageQuota>) -> Self {
        todo!()
    }

    /// The file's length in bytes.
    pub fn size(&self) -> u64 {
        todo!()
    }

    /// Sets the length without touching pages: for a file that grew (use `truncate` to shrink).
    pub fn set_size(&self, _len: u64) {
        todo!()
    }

    /// The page at `index`, if it is there.
    pub fn get(&self, _index: u64) -> Option<Frame> {
        todo!()
    }

    /// The page at `index`; a hole becomes a zeroed page.
    pub fn get_or_alloc(&self, _index: u64) -> Result<Frame> {
        todo!()
    }

    /// Makes `frame` the page at `index`, replacing (never in a mapped file) what was there.
    pub fn insert(&self, _index: u64, _frame: Frame) -> Result<()> {
        todo!()
    }

    /// Reads from byte `off` up to the file's end or the sink's; holes read as zeros.
    pub fn read(&self, _off: u64, _dst: &mut Sink<'_>) -> Result<usize> {
        todo!()
    }

    /// Writes at byte `off`, growing the file; partial count before an error.
    pub fn write(&self, _off: u64, _src: &mut Source<'_>) -> Result<usize> {
        todo!()
    }

    /// Sets the length: zeroes the tail of the last page and drops what lies beyond, also from every
    /// mapping, where it then raises SIGBUS.
    pub fn truncate(&self, _len: u64) -> Result<()> {
        todo!()
    }

    /// Makes a hole of the byte range; its pages go from every mapping too.
    pub fn punch(&self, _bytes: Range<u64>) -> Result<()> {
        todo!()
    }

    /// How many pages are there.
    pub fn resident(&self) -> u64 {
        todo!()
    }

    /// The first byte at or after `off` that lies in a present page (SEEK_DATA).
    pub fn next_data(&self, _off: u64) -> Option<u64> {
        todo!()
    }

    /// The first byte at or after `off` that lies in a hole (SEEK_HOLE); at most the length.
    pub fn next_hole(&self, _off: u64) -> u64 {
        todo!()
    }
}
