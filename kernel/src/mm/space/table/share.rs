//! Leaf page tables that fork shares instead of copying their entries.
//!
//! A leaf table full of private pages gets one more space, and the entry that points to it loses `WRITABLE` in
//! each: reads go on, and the first write in its 2 MiB is a fault that makes it the space's own again. That
//! copies the table if others still have it (each page then gets a second reference and is copied when it is
//! written, as after any fork), and costs nothing if they have executed something else or ended.
//!
//! A shared table is never changed, except that accessed bits are set by CPUs and `WRITABLE` is cleared by
//! whoever copies it. So each space may look at it under its own lock alone. Its pages have one reference for
//! all sharers: whoever looks at the references of a page makes the table its own first.
//!
//! Owns the number of sharers, which stands in the table's frame. Locks: no lock guards a shared table; each space's own guards the entry
//! that points to it.

use super::entries::{OWNED, Table, WRITABLE, frame_of};
use super::table::{
    LEAF_SPAN, LEVELS, LeafPart, LeafState, NO_LEAF, PageTable, TABLE_FLAGS, index_at,
};
use super::tlb::CpuMask;
use crate::mm::frames;
use crate::mm::layout::page_down;
use crate::mm::space::space::Inner;
use abi::{Errno, Result};
use core::ops::Range;
use core::sync::atomic::Ordering;

/// Least number of groups of 16 pages of which some are private, for which a table is shared: a table that is soon
/// written costs a fault more than copying its entries at once.
const MIN_GROUPS: u32 = 16;
/// Mappings with fewer pages have no table that is worth it.
pub(in crate::mm::space) const MIN_PAGES: u64 = 128;
/// Most spaces that share one table.
const MAX_SHARERS: u16 = 60_000;

impl Table {
    /// Whether all entries outside `range` are zero.
    fn holds_only(self, range: Range<usize>) -> bool {
        let mut others = false;
        self.for_each(0..range.start, |_, _| others = true);
        self.for_each(range.end..512, |_, _| others = true);
        !others
    }

    /// How many entries hold a reference.
    fn count_owned(self) -> i64 {
        let mut owned = 0i64;
        self.for_each_group(0..512, |group| {
            if group.owned {
                let entries = self.get_group(group.first);
                let held = entries.iter().map(|entry| (entry & OWNED != 0) as i64);
                owned = owned.wrapping_add(held.fold(0, i64::wrapping_add));
            }
        });
        owned
    }

    /// Fills this empty table with the entries of a shared one; each private page gets a reference more.
    fn copy_shared(self, from: Table) {
        let (meta, other) = (self.0.meta(), from.0.meta());
        meta.set_word(other.word());
        meta.set_refs_raw(other.refs_raw());
        from.for_each(0..512, |index, entry| {
            if entry & OWNED != 0 {
                frame_of(entry).meta().get();
            }
            if entry & WRITABLE != 0 {
                // In one piece: CPUs of the other sharers may be setting the accessed bit. Relaxed: whoever has the
                // table alone afterwards learns of it through the number of sharers.
                from.entry(index).fetch_and(!WRITABLE, Ordering::Relaxed);
            }
            self.replace(index, entry & !WRITABLE);
        });
    }
}

impl LeafPart {
    /// Whether fork should share the table of which this part lies in one private mapping without a file.
    pub fn is_worth_sharing(&self) -> bool {
        let meta = self.table.0.meta();
        let worth = if self.state == LeafState::Shared {
            meta.sharers() < MAX_SHARERS
        } else {
            meta.refs_raw().count_ones() >= MIN_GROUPS
        };
        worth && self.table.holds_only(self.range.clone())
    }

    /// Whether a table that may not be changed has entries outside this part.
    fn is_split(&self) -> bool {
        !self.is_own() && !self.table.holds_only(self.range.clone())
    }
}

/// Gives up one space's share of a table that no CPU uses through that space any more.
pub(super) fn release(table: Table) {
    if table.0.meta().drop_sharer() {
        table.clear(|_, entry| frames::put(frame_of(entry)));
        frames::free_table(table.0);
    }
}

impl PageTable {
    /// The table one level above the leaves in which `addr` belongs, and its place there.
    #[inline]
    pub(super) fn directory(&self, addr: u64) -> Option<(Table, usize)> {
        let mut table = self.root;
        for level in (2..LEVELS).rev() {
            let entry = table.get(index_at(addr, level));
            if entry == 0 {
                return None;
            }
            table = Table(frame_of(entry));
        }
        Some((table, index_at(addr, 1)))
    }

    pub(super) fn directory_or_alloc(&mut self, addr: u64) -> Result<Table> {
        let mut table = self.root;
        for level in (2..LEVELS).rev() {
            table = self.below_or_alloc(table, index_at(addr, level))?;
        }
        Ok(table)
    }

    /// Whether the leaf table at `addr` is a shared one.
    pub fn is_shared(&self, addr: u64) -> bool {
        self.shared != 0
            && self.directory(addr).is_some_and(|(directory, index)| {
                let entry = directory.get(index);
                entry != 0 && LeafState::of(entry) == LeafState::Shared
            })
    }

    /// Shares the table of `part` with `child`, which has none there: how many private pages it maps. The caller
    /// flushes the space from all TLBs, which `cpus` may have loaded.
    pub fn share(&mut self, child: &mut PageTable, part: &LeafPart, cpus: &CpuMask) -> Result<i64> {
        let to = child.directory_or_alloc(part.addr)?;
        let Some((directory, index)) = self.directory(part.addr) else { return Ok(0) };
        let entry = part.table.0.phys() | TABLE_FLAGS & !WRITABLE;
        let meta = part.table.0.meta();
        if part.state == LeafState::Shared {
            meta.add_sharer();
        } else {
            if part.state == LeafState::Large {
                self.open(directory, index, part.addr, cpus);
            }
            meta.begin_sharing();
            directory.replace(index, entry);
            self.shared += 1;
            self.last = (NO_LEAF, self.root);
        }
        to.set_below(index_at(part.addr, 1), entry);
        child.shared += 1;
        child.tables += 1;
        Ok(part.table.count_owned())
    }

    /// Makes the shared leaf table at `index` of `directory` this space's own.
    #[cold]
    pub fn own(&mut self, directory: Table, index: usize, cpus: &CpuMask) -> Result<Table> {
        let table = Table(frame_of(directory.get(index)));
        if table.0.meta().sharers() == 1 {
            // The other sharers have gone. A CPU whose TLB has the old entry takes a fault and finds the new one.
            directory.replace(index, table.0.phys() | TABLE_FLAGS);
            self.shared -= 1;
            return Ok(table);
        }
        let own = Table(frames::alloc_table().ok_or(Errno::ENOMEM)?);
        own.copy_shared(table);
        directory.replace(index, own.0.phys() | TABLE_FLAGS);
        self.shared -= 1;
        // Before the share is given up: then others may change the table.
        cpus.flush(None);
        release(table);
        Ok(own)
    }

    /// Makes all leaf tables of `start..end` this space's own.
    pub fn own_range(&mut self, start: u64, end: u64, cpus: &CpuMask) -> Result<()> {
        let mut at = start;
        while self.has_fixed()
            && let Some(part) = self.next_leaf(at, end)
        {
            at = part.addr_of(part.range.end);
            if !part.is_own() {
                self.leaf_or_alloc(part.addr, cpus)?;
            }
        }
        Ok(())
    }

    /// Takes out the table of `part` if it is shared and maps nothing else: it, and how many private pages it maps.
    /// The caller flushes, then gives it to [`release`].
    pub fn detach(&mut self, part: &LeafPart) -> Option<(Table, i64)> {
        if part.is_split() {
            return None;
        }
        let (directory, index) = self.directory(part.addr)?;
        directory.replace(index, 0);
        self.shared -= 1;
        self.tables -= 1;
        Some((part.table, part.table.count_owned()))
    }
}

impl Inner {
    /// Before pages of `start..end` are taken out: makes those tables the space's own of which a mapping in the
    /// range has only a part, so that the rest can be taken out whole.
    pub(in crate::mm::space) fn own_edges(
        &mut self,
        start: u64,
        end: u64,
        cpus: &CpuMask,
    ) -> Result<()> {
        let mut at = start;
        while at < end
            && self.table.has_fixed()
            && let Some(vma) = self.vmas.at_or_after(at).and_then(|pos| self.vmas.get(pos))
            && vma.start < end
        {
            let (low, high) = (vma.start.max(start), vma.end.min(end));
            at = high;
            for edge in [low, page_down(high - 1)] {
                let span = edge & !(LEAF_SPAN - 1);
                let within = span.max(low)..(span + LEAF_SPAN).min(high);
                let part = self.table.next_leaf(within.start, within.end);
                if part.is_some_and(|part| part.is_split()) {
                    self.table.leaf_or_alloc(edge, cpus)?;
                }
            }
        }
        Ok(())
    }
}
