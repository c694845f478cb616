//! Where a mapping goes when the program leaves it open.
//!
//! Owns nothing, and changes nothing: the place is free as long as the caller holds the lock. Never chooses a place below the lowest
//! that mmap may use, nor one in the guard below a stack. Locks: the space's, which the caller holds.

use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::layout::{BOTTOM_UP_BASE, MMAP_MIN, MmapBase, page_down};
use crate::mm::space::space::Inner;
use crate::mm::space::table::LEAF_SPAN;
use crate::mm::space::vma::Vma;
use abi::{Errno, Result};
use alea_ranges::Span;

/// Where MAP_32BIT places.
const LOW: core::ops::Range<u64> = 1 << 30..2 << 30;

crate::setting! {
    wide:
    /// The lowest address at which who is not privileged may map, as long as it is named.
    pub static MMAP_MIN_ADDR = MMAP_MIN, 0..=u64::MAX;
}

/// Whether a mapping there needs CAP_SYS_RAWIO.
#[inline]
pub fn is_low(addr: u64) -> bool {
    addr < lowest_allowed()
}

#[inline]
fn lowest_allowed() -> u64 {
    MMAP_MIN_ADDR.get()
}

/// The lowest address that is chosen for a program.
#[inline]
pub fn lowest_chosen() -> u64 {
    lowest_allowed().max(MMAP_MIN)
}

impl Inner {
    /// A free place for `len` bytes: at `hint` if it is free, else on the mmap base's side; where that is below and full, anywhere.
    pub(in crate::mm::space) fn choose(&mut self, hint: Option<u64>, len: u64) -> Result<u64> {
        if len > USER_END {
            return Err(Errno::ENOMEM);
        }
        if let Some(hint) = hint.map(|hint| page_down(hint).max(lowest_chosen()))
            && hint <= USER_END - len
            && self.fits(hint, len)
        {
            return Ok(hint);
        }
        let place = match self.layout.mmap_base {
            MmapBase::Top(top) => self
                .vmas
                .highest_gap(len, lowest_chosen(), top)
                .or_else(|| self.vmas.lowest_gap(len, BOTTOM_UP_BASE, USER_END)),
            MmapBase::Bottom(bottom) => self.vmas.lowest_gap(len, bottom, USER_END),
        };
        place.ok_or(Errno::ENOMEM)
    }

    /// A free place for private memory that can be all large pages: at a multiple of their size, if there is one.
    pub(super) fn choose_large(&mut self, len: u64) -> Result<u64> {
        let loose = len.checked_add(LEAF_SPAN - PAGE_SIZE as u64).ok_or(Errno::ENOMEM)?;
        match self.choose(None, loose) {
            Ok(place) => Ok(place.next_multiple_of(LEAF_SPAN)),
            Err(_) => self.choose(None, len),
        }
    }

    /// A free place for MAP_32BIT: at `hint` if that is low and free, else in the second GiB, from its start.
    pub(super) fn choose_low(&mut self, hint: Option<u64>, len: u64) -> Result<u64> {
        match hint.map(page_down) {
            Some(hint)
                if hint >= lowest_chosen()
                    && len <= LOW.end - hint.min(LOW.end)
                    && self.fits(hint, len) =>
            {
                Ok(hint)
            }
            _ => self.vmas.lowest_gap(len, LOW.start, LOW.end).ok_or(Errno::ENOMEM),
        }
    }

    /// Whether `addr..addr + len` is free and respects the guard of the mapping above.
    pub(super) fn fits(&self, addr: u64, len: u64) -> bool {
        let above = self.vmas.at_or_after(addr).and_then(|pos| self.vmas.get(pos));
        above.is_none_or(|vma: &Vma| addr + len <= vma.start.saturating_sub(vma.guard()))
    }
}
