//! [`PageTable`]: four levels of user page tables.
//!
//! Invariants:
//! - The word of a table's metadata has bit `g` set whenever one of the entries `8g..8g+8` is not zero: what
//!   is done to all entries skips the others. Bits are cleared only with the whole table.
//! - A leaf entry that is not zero points to a frame. With `OWNED` it holds one reference to the frame;
//!   without, the frame is the page cache's (see there) or the shared zero page.
//! - An entry with `OWNED` but without `PRESENT` is a page of a mapping that allows no access.
//! - The kernel's half of the root never changes.
//!
//! The owner's lock guards everything; only the CPUs themselves write besides, and only the accessed and
//! dirty bits, so plain loads and stores (Relaxed) are enough.

use crate::arch::page::{PTE_ADDRESS, PteFlags};
use crate::mm::frames::{self, Pfn};
use crate::mm::layout::PAGE_SIZE;
use abi::{Errno, Result};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// The entry holds a reference to its frame.
pub(super) const OWNED: u64 = PteFlags::SOFT_0.bits();
pub(super) const PRESENT: u64 = PteFlags::PRESENT.bits();
pub(super) const WRITABLE: u64 = PteFlags::WRITABLE.bits();
pub(super) const ACCESSED: u64 = PteFlags::ACCESSED.bits();
pub(super) const DIRTY: u64 = PteFlags::DIRTY.bits();

const TABLE_FLAGS: u64 = PRESENT | WRITABLE | PteFlags::USER.bits();
/// Bytes that a leaf table maps.
pub(super) const LEAF_SPAN: u64 = 512 * PAGE_SIZE as u64;
const LEVELS: u32 = 4;
/// Entries of the root that belong to user space.
const USER_ROOT: usize = 256;

/// The frame that an entry points to.
#[inline]
pub(super) fn frame_of(entry: u64) -> Pfn {
    Pfn::of_phys(entry & PTE_ADDRESS)
}

/// One table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Table(pub Pfn);

impl Table {
    #[inline]
    fn entry(self, index: usize) -> &'static AtomicU64 {
        debug_assert!(index < 512);
        // SAFETY: a table is a frame in the direct map that stays one while its owner's lock is held; the
        // index is masked to the table; CPUs read and write entries as atomic words.
        unsafe { &*self.0.ptr().cast::<AtomicU64>().wrapping_add(index & 511) }
    }

    #[inline]
    pub fn get(self, index: usize) -> u64 {
        self.entry(index).load(Ordering::Relaxed)
    }

    /// Stores an entry that may have been zero.
    #[inline]
    pub fn set(self, index: usize, entry: u64) {
        let meta = self.0.meta();
        meta.set_word(meta.word() | 1 << (index / 8));
        self.entry(index).store(entry, Ordering::Relaxed);
    }

    /// Stores over an entry that is not zero, or stores zero.
    #[inline]
    pub fn replace(self, index: usize, entry: u64) {
        self.entry(index).store(entry, Ordering::Relaxed);
    }

    /// Whether the entries of `range` are known to be zero.
    #[inline]
    pub fn is_empty(self, range: Range<usize>) -> bool {
        range.is_empty() || self.0.meta().word() & group_mask(&range) == 0
    }

    /// Visits the entries of `range` that are not zero.
    #[inline]
    pub fn for_each(self, range: Range<usize>, mut visit: impl FnMut(usize, u64)) {
        if range.is_empty() {
            return;
        }
        let mut groups = self.0.meta().word() & group_mask(&range);
        while groups != 0 {
            let first = groups.trailing_zeros() as usize * 8;
            groups &= groups - 1;
            for index in first.max(range.start)..(first + 8).min(range.end) {
                let entry = self.get(index);
                if entry != 0 {
                    visit(index, entry);
                }
            }
        }
    }
}

/// The groups of eight that a range of entries touches; the range is not empty.
#[inline]
fn group_mask(range: &Range<usize>) -> u64 {
    (u64::MAX << (range.start / 8)) & (u64::MAX >> (63 - (range.end - 1) / 8))
}

/// Index into a table of `level` (0 is the leaf).
#[inline]
pub(super) fn index_at(addr: u64, level: u32) -> usize {
    (addr >> (12 + 9 * level)) as usize & 511
}

/// A user address space's tables.
pub(super) struct PageTable {
    root: Table,
    /// Tables besides the root.
    pub tables: u64,
}

/// A part of a leaf table: entries `range`, of which the first maps `addr`.
#[derive(Clone)]
pub(super) struct LeafPart {
    pub table: Table,
    pub addr: u64,
    pub range: Range<usize>,
}

impl LeafPart {
    /// The address that entry `index` maps.
    #[inline]
    pub fn addr_of(&self, index: usize) -> u64 {
        self.addr + (index - self.range.start) as u64 * PAGE_SIZE as u64
    }
}

impl PageTable {
    /// Tables that map nothing but the kernel.
    pub fn new() -> Result<Self> {
        Ok(Self { root: Table(frames::alloc_root().ok_or(Errno::ENOMEM)?), tables: 0 })
    }

    /// The root, for CR3.
    pub fn root(&self) -> Pfn {
        self.root.0
    }

    /// The leaf table that maps `addr`, if there is one.
    #[inline]
    pub fn leaf(&self, addr: u64) -> Option<Table> {
        let mut table = self.root;
        for level in (1..LEVELS).rev() {
            let entry = table.get(index_at(addr, level));
            if entry == 0 {
                return None;
            }
            table = Table(frame_of(entry));
        }
        Some(table)
    }

    /// The leaf table that maps `addr`, made if need be.
    #[inline]
    pub fn leaf_or_alloc(&mut self, addr: u64) -> Result<Table> {
        let mut table = self.root;
        for level in (1..LEVELS).rev() {
            let index = index_at(addr, level);
            let entry = table.get(index);
            table = if entry != 0 {
                Table(frame_of(entry))
            } else {
                let new = frames::alloc_table().ok_or(Errno::ENOMEM)?;
                self.tables += 1;
                table.set(index, new.phys() | TABLE_FLAGS);
                Table(new)
            };
        }
        Ok(table)
    }

    /// The entry that maps `addr`; 0 if there is none.
    #[inline]
    pub fn get(&self, addr: u64) -> u64 {
        self.leaf(addr).map_or(0, |leaf| leaf.get(index_at(addr, 0)))
    }

    /// The next part of `addr..end` that has a leaf table.
    pub fn next_leaf(&self, mut addr: u64, end: u64) -> Option<LeafPart> {
        'from_root: while addr < end {
            let mut table = self.root;
            for level in (1..LEVELS).rev() {
                let entry = table.get(index_at(addr, level));
                if entry == 0 {
                    let span = 1u64 << (12 + 9 * level);
                    addr = (addr & !(span - 1)) + span;
                    continue 'from_root;
                }
                table = Table(frame_of(entry));
            }
            let leaf_end = ((addr & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(end);
            let first = index_at(addr, 0);
            let count = ((leaf_end - addr) / PAGE_SIZE as u64) as usize;
            return Some(LeafPart { table, addr, range: first..first + count });
        }
        None
    }

    /// Visits the leaf entries of `start..end` that are not zero: `visit(table, index, addr, entry)`.
    #[inline]
    pub fn for_each(&self, start: u64, end: u64, mut visit: impl FnMut(Table, usize, u64, u64)) {
        let mut at = start;
        while let Some(part) = self.next_leaf(at, end) {
            part.table.for_each(part.range.clone(), |index, entry| {
                visit(part.table, index, part.addr_of(index), entry);
            });
            at = part.addr_of(part.range.end);
        }
    }

    /// Takes out the tables that map nothing but parts of `floor..ceiling`, all of whose entries within
    /// `start..end` were cleared; gives each to `free`.
    pub fn free_tables(
        &mut self,
        start: u64,
        end: u64,
        free_range: Range<u64>,
        free: &mut dyn FnMut(Pfn),
    ) {
        let mut freed = 0;
        free_below(self.root, LEVELS - 1, start, end, &free_range, &mut |table| {
            freed += 1;
            free(table);
        });
        self.tables -= freed;
    }

    /// Clears everything, handing each entry that was set to `entry(addr, entry)`, and gives all tables
    /// back. For a space that no CPU has loaded.
    pub fn tear_down(&mut self, entry: &mut impl FnMut(u64, u64)) {
        clear_level(self.root, LEVELS - 1, 0, 0..USER_ROOT, entry);
        self.root.0.meta().set_word(0);
        self.tables = 0;
        frames::free_root(self.root.0);
    }
}

fn clear_level(
    table: Table,
    level: u32,
    base: u64,
    range: Range<usize>,
    visit: &mut impl FnMut(u64, u64),
) {
    table.for_each(range, |index, entry| {
        let addr = base + ((index as u64) << (12 + 9 * level));
        table.replace(index, 0);
        if level == 1 {
            let leaf = Table(frame_of(entry));
            leaf.for_each(0..512, |index, entry| {
                leaf.replace(index, 0);
                visit(addr + ((index as u64) << 12), entry);
            });
            frames::free_table(leaf.0);
        } else {
            let below = Table(frame_of(entry));
            clear_level(below, level - 1, addr, 0..512, visit);
            frames::free_table(below.0);
        }
    });
}

fn free_below(
    table: Table,
    level: u32,
    start: u64,
    end: u64,
    free_range: &Range<u64>,
    free: &mut dyn FnMut(Pfn),
) {
    let span = 1u64 << (12 + 9 * level);
    let mut base = start & !(span - 1);
    while base < end {
        let index = index_at(base, level);
        let entry = table.get(index);
        if entry != 0 {
            let below = Table(frame_of(entry));
            if level > 1 {
                free_below(
                    below,
                    level - 1,
                    start.max(base),
                    end.min(base + span),
                    free_range,
                    free,
                );
            }
            if free_range.start <= base && base + span <= free_range.end {
                table.replace(index, 0);
                free(below.0);
            }
        }
        base += span;
    }
}
