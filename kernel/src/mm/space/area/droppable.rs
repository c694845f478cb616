//! Taking back what may be dropped (MAP_DROPPABLE), before anybody is killed for memory.
//!
//! A dropped page reads as zeros: that is what programs that map such memory expect. Owns the note whether there is any
//! such mapping. Never drops a page of another mapping. Locks: one space at a time; the caller holds none, and no page
//! cache.

use crate::mm::space::registry;
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::AddressSpace;
use crate::mm::space::table::tlb::Gather;
use crate::sync::cond_resched;
use core::sync::atomic::{AtomicBool, Ordering};

/// Pages that are enough for once.
const ENOUGH: u64 = 1024;

/// Whether a program ever mapped any.
static ANY: AtomicBool = AtomicBool::new(false);

/// Notes that such a mapping is made.
pub(super) fn note() {
    // Relaxed: whoever misses it misses an empty mapping.
    ANY.store(true, Ordering::Relaxed);
}

/// Drops pages until there are enough or none is left: how many.
pub fn drop_pages() -> u64 {
    let mut dropped = 0;
    // Relaxed: see `note`.
    if ANY.load(Ordering::Relaxed) {
        registry::for_each(|space| {
            if dropped < ENOUGH {
                dropped += space.drop_pages(ENOUGH - dropped);
            }
        });
    }
    dropped
}

impl AddressSpace {
    fn drop_pages(&self, wanted: u64) -> u64 {
        let mut inner = self.inner.lock();
        let before = inner.counts.rss_anon;
        let mut next = inner.vmas.first();
        while let Some((pos, vma)) = next.and_then(|pos| Some((pos, inner.vmas.get(pos)?))) {
            cond_resched();
            next = inner.vmas.next(pos);
            if vma.flags.contains(VmFlags::DROPPABLE) {
                let (flags, range) = (vma.flags, vma.start..vma.end);
                // One gather a mapping: its pages are free when the next is looked at.
                let mut gather = Gather::new(&self.cpus);
                inner.zap(&mut gather, flags, range, true);
                drop(gather);
                if before.saturating_sub(inner.counts.rss_anon) >= wanted {
                    break;
                }
            }
        }
        before.saturating_sub(inner.counts.rss_anon)
    }
}
