//! [`Run`]: faults that followed each other upwards, because a program writes fresh memory from one page to the next.
//!
//! Owns the run that a space has seen last. Never asks for more than a quarter of what the program wrote itself in that run, nor
//! more than [`MOST`] pages, so that memory which is touched here and there costs nothing more. Locks: the space's guards it.

use crate::base::PAGE_SIZE;

/// Most pages that are filled in ahead of one fault.
const MOST: u64 = 32;

/// Faults that followed each other upwards.
#[derive(Default)]
pub(super) struct Run {
    /// Where the next one is expected.
    next: u64,
    /// Pages since the first.
    pages: u64,
}

impl Run {
    /// Notes a fault: how many pages after it are worth filling in.
    pub(super) fn goes_on(&mut self, addr: u64) -> u64 {
        self.pages = if addr == self.next { self.pages + 1 } else { 1 };
        self.next = addr + PAGE_SIZE as u64;
        (self.pages / 4).min(MOST)
    }

    /// Notes that so many pages were filled in.
    pub(super) fn filled(&mut self, pages: u64) {
        self.pages += pages;
        self.next += pages * PAGE_SIZE as u64;
    }
}
