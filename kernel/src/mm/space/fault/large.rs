//! Transparent huge pages: memory of a program's own that it begins to write is filled in by large pages, where that is wanted.
//!
//! Owns nothing: `huge` says when they are wanted. Never makes a large page of what a mapping does
//! not hold whole, of a stack or of what may be dropped, nor where a page table has been made for smaller ones. Locks: the space's.

use crate::mm::frames::{self, LARGE_PAGES, Pfn};
use crate::mm::space::huge::{self, Wanted};
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::{LEAF_SPAN, LargeFlags};
use crate::mm::space::vma::Vma;
use alea_ranges::Pos;
use core::sync::atomic::Ordering;

impl Vma {
    /// Whether it may have large pages at all.
    pub fn can_be_large(&self) -> bool {
        let never = VmFlags::GROWSDOWN
            .union(VmFlags::DROPPABLE)
            .union(VmFlags::SPECIAL)
            .union(VmFlags::WHOLE)
            .union(VmFlags::NOHUGE);
        self.is_private_anon() && !self.flags.intersects(never)
    }

    /// Whether it wants them now.
    pub fn wants_large(&self) -> bool {
        let is_wanted = match huge::wanted() {
            Wanted::Never => false,
            Wanted::Madvise => self.flags.contains(VmFlags::HUGE),
            Wanted::Always => true,
        };
        is_wanted && self.can_be_large()
    }

    /// Whether it is long enough for one, where it lies.
    pub fn holds_any_large(&self) -> bool {
        self.holds_large(self.start.saturating_add(LEAF_SPAN - 1))
    }

    /// Whether the large page around `addr` would lie in it.
    fn holds_large(&self, addr: u64) -> bool {
        let base = addr & !(LEAF_SPAN - 1);
        self.start <= base && self.end - base.min(self.end) >= LEAF_SPAN
    }
}

impl AddressSpace {
    /// Whether the program lets its memory have large pages (PR_SET_THP_DISABLE).
    pub fn allows_large(&self) -> bool {
        // Relaxed: a setting.
        !self.without_large.load(Ordering::Relaxed)
    }

    /// Says whether its memory, its children's and that of what it executes may have large pages from now on; those that
    /// are there stay.
    pub fn allow_large(&self, allowed: bool) {
        // Relaxed: a setting.
        self.without_large.store(!allowed, Ordering::Relaxed);
    }
}

impl Inner {
    /// The frame at `addr` of the mapping at `pos` if a large page has it, or can have it because it is about to be written.
    #[inline(never)]
    pub(super) fn resolve_large(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        addr: u64,
        write: bool,
    ) -> Option<Pfn> {
        if self.table.large != 0
            && let Some(frame) = self.table.large_at(addr)
        {
            // Another thread was faster, or this CPU's TLB had an older entry.
            space.cpus.forget_here(addr);
            return Some(frame);
        }
        let vma = self.vmas.get(pos)?;
        let is_wanted = write && space.allows_large() && vma.wants_large() && vma.holds_large(addr);
        if is_wanted && self.table.is_bare(addr) { self.fill_large(pos, addr) } else { None }
    }

    /// Maps a large page of zeros where nothing is mapped: the frame at `addr`.
    fn fill_large(&mut self, pos: Pos, addr: u64) -> Option<Pfn> {
        let flags = LargeFlags::of(self.vmas.get(pos)?)?;
        let Some(first) = frames::alloc_large() else {
            huge::count_fault(false);
            return None;
        };
        frames::clear_large(first);
        if self.table.set_large(addr, first, flags).is_err() {
            frames::put_large(first);
            return None;
        }
        if let Some(vma) = self.vmas.get_mut(pos) {
            vma.flags.insert(VmFlags::HAS_ANON);
        }
        huge::count_fault(true);
        self.count_rss(VmFlags::empty(), true, LARGE_PAGES as i64);
        self.table.large_at(addr)
    }
}
