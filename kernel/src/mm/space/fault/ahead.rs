//! Anonymous memory that a program writes from one page to the next: a fault fills in pages that it has not come to yet.
//!
//! Owns nothing: [`run`](super::super::run) says how many. Never fills a page beyond the mapping, over one that is there, with
//! memory that is needed elsewhere, or after `MADV_NOHUGEPAGE`. Locks: the space's.

use crate::base::PAGE_SIZE;
use crate::mm::frames::{self, For};
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::Inner;
use crate::mm::space::table::{LEAF_SPAN, OWNED, Table, index_at};
use crate::sync::Pace;
use alea_frames::Owner;
use alea_ranges::Pos;

impl Inner {
    /// A page of the mapping at `pos` was filled in at `addr`, with `flags`, because it was written: others after it, maybe.
    pub(super) fn fill_ahead(&mut self, pos: Pos, leaf: Table, addr: u64, flags: u64) {
        let wanted = self.run.goes_on(addr);
        let Some(vma) = self.vmas.get(pos) else { return };
        if wanted == 0 || vma.flags.intersects(VmFlags::DROPPABLE.union(VmFlags::NOHUGE)) {
            return;
        }
        let after = addr + PAGE_SIZE as u64;
        let leaf_end = (addr & !(LEAF_SPAN - 1)) + LEAF_SPAN;
        let end = (after + wanted * PAGE_SIZE as u64).min(leaf_end).min(vma.end);
        let mut filled = 0;
        for at in (after..end).step_by(PAGE_SIZE).paced() {
            let index = index_at(at, 0);
            if leaf.get(index) != 0 {
                break;
            }
            let Some(frame) = frames::alloc_zeroed(Owner::Anon, For::Stock) else { break };
            leaf.set(index, frame.phys() | flags | OWNED);
            filled += 1;
        }
        self.run.filled(filled);
        self.count_rss(VmFlags::empty(), true, filled as i64);
    }
}
