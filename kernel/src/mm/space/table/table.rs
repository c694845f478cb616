//! [`PageTable`]: four levels of user page tables.
//!
//! Invariants, besides those of a single table (`entries`):
//! - A leaf table whose entry one level up lacks `WRITABLE` is shared, or was until lately: nobody changes
//!   anything in it but the accessed bits, and `WRITABLE` from set to clear (see `share`).
//! - Where the entry one level up maps a large page itself, a leaf table stands behind it that says the same page by page, and which
//!   nobody changes until the large page is opened (see `large`).
//! - The kernel's half of the root never changes.
//! - Where tables are isolated there is a second root, the table that the program runs on. Its user half has the same entries, but
//!   that in the first they forbid execution: the kernel runs nothing of a program's.
//!
//! Owns the tables of the user's half. Never frees a table that a CPU may be walking: `tlb` gives it back after the
//! flush. Locks: the space's, which the caller holds, guards everything.

use super::behind;
use super::entries::{LARGE, PRESENT, Table, WRITABLE, frame_of};
use super::tlb::CpuMask;
use crate::base::isolation::Roots;
use crate::base::page::PteFlags;
use crate::base::{PAGE_SIZE, isolation, page};
use crate::mm::frames::{self, Pfn, Root};
use crate::sync::cond_resched;
use abi::{Errno, Result};
use core::ops::Range;
use x86_64::PhysAddr;

pub(super) const TABLE_FLAGS: u64 = PRESENT | WRITABLE | PteFlags::USER.bits();
/// Bytes that a leaf table maps.
pub(in crate::mm::space) const LEAF_SPAN: u64 = 512 * PAGE_SIZE as u64;
pub(super) const LEVELS: u32 = 4;

/// Index into a table of `level` (0 is the leaf).
#[inline]
pub(in crate::mm::space) fn index_at(addr: u64, level: u32) -> usize {
    (addr >> (12 + 9 * level)) as usize & 511
}

/// A user address space's tables.
pub(in crate::mm::space) struct PageTable {
    pub(super) root: Table,
    /// The one that the program runs on, where tables are isolated.
    programs: Option<Table>,
    /// Tables besides the roots.
    pub tables: u64,
    /// Leaf tables that are shared with other spaces, or were until lately.
    pub shared: u32,
    /// Leaf tables that stand behind large pages.
    pub large: u32,
    /// The leaf table that was looked up last, which is not shared, and which 2 MiB it maps.
    pub(super) last: (u64, Table),
}

/// No 2 MiB at all.
pub(in crate::mm::space) const NO_LEAF: u64 = u64::MAX;

/// A part of a leaf table: entries `range`, of which the first maps `addr`.
#[derive(Clone)]
pub(in crate::mm::space) struct LeafPart {
    pub table: Table,
    pub addr: u64,
    pub range: Range<usize>,
    pub state: LeafState,
}

/// What a space may do to a leaf table that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mm::space) enum LeafState {
    /// It may be changed.
    Own,
    /// Others have it too, or had until lately: it may be looked at.
    Shared,
    /// It stands behind a large page: it may be looked at.
    Large,
}

impl LeafState {
    /// What the entry one level up says, which is not zero.
    #[inline(always)]
    pub(super) fn of(entry: u64) -> Self {
        match entry & (WRITABLE | LARGE) {
            WRITABLE => Self::Own,
            0 => Self::Shared,
            _ => Self::Large,
        }
    }
}

/// The leaf table of an entry one level up, which is not zero.
#[inline(always)]
pub(super) fn leaf_of(entry: u64) -> Table {
    if entry & LARGE != 0 { behind::behind(entry) } else { Table(frame_of(entry)) }
}

impl LeafPart {
    /// Whether it may be changed.
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        self.state == LeafState::Own
    }

    /// The address that entry `index` maps.
    #[inline(always)]
    pub fn addr_of(&self, index: usize) -> u64 {
        let pages = index.wrapping_sub(self.range.start) as u64;
        self.addr.wrapping_add(pages.wrapping_mul(PAGE_SIZE as u64))
    }
}

impl PageTable {
    /// Tables that map nothing but the kernel.
    pub fn new() -> Result<Self> {
        let root = Table(frames::alloc_root(Root::Kernels).ok_or(Errno::ENOMEM)?);
        let programs = if isolation::is_on() { Some(programs_root(root)?) } else { None };
        Ok(Self { root, programs, tables: 0, shared: 0, large: 0, last: (NO_LEAF, root) })
    }

    /// The roots, for CR3.
    pub fn roots(&self) -> Roots {
        let at = |table: Table| PhysAddr::new_truncate(table.0.phys());
        Roots { kernels: at(self.root), programs: at(self.programs.unwrap_or(self.root)) }
    }

    /// The leaf table that maps `addr`, if there is one.
    #[inline]
    pub fn leaf(&self, addr: u64) -> Option<Table> {
        let (directory, index) = self.directory(addr)?;
        let entry = directory.get(index);
        (entry != 0).then(|| leaf_of(entry))
    }

    /// Whether `addr` is in the leaf table that was looked up last.
    #[inline(always)]
    pub fn is_last(&self, addr: u64) -> bool {
        self.last.0 == addr / LEAF_SPAN
    }

    /// Whether some leaf tables may only be looked at.
    #[inline(always)]
    pub fn has_fixed(&self) -> bool {
        self.shared | self.large != 0
    }

    /// The leaf table that maps `addr`, to be changed: made if need be, and the space's own. `cpus` have the space
    /// loaded.
    #[inline]
    pub fn leaf_or_alloc(&mut self, addr: u64, cpus: &CpuMask) -> Result<Table> {
        let (which, last) = self.last;
        if which == addr / LEAF_SPAN { Ok(last) } else { self.walk_or_alloc(addr, cpus) }
    }

    fn walk_or_alloc(&mut self, addr: u64, cpus: &CpuMask) -> Result<Table> {
        let mut table = self.root;
        for level in (2..LEVELS).rev() {
            table = self.below_or_alloc(table, index_at(addr, level))?;
        }
        let index = index_at(addr, 1);
        let leaf = match table.get(index) {
            0 => self.below_or_alloc(table, index)?,
            entry => match LeafState::of(entry) {
                LeafState::Own => Table(frame_of(entry)),
                LeafState::Shared => self.own(table, index, cpus)?,
                LeafState::Large => self.open(table, index, addr, cpus),
            },
        };
        self.last = (addr / LEAF_SPAN, leaf);
        Ok(leaf)
    }

    /// The table that entry `index` of `table` points to, made if need be.
    #[inline(always)]
    pub(super) fn below_or_alloc(&mut self, table: Table, index: usize) -> Result<Table> {
        let entry = table.get(index);
        if entry != 0 {
            return Ok(Table(frame_of(entry)));
        }
        let new = frames::alloc_table().ok_or(Errno::ENOMEM)?;
        self.tables += 1;
        if let Some(programs) = self.programs
            && table == self.root
        {
            programs.set_below(index, new.phys() | TABLE_FLAGS);
            table.set_below(index, new.phys() | TABLE_FLAGS | page::nx().bits());
        } else {
            table.set_below(index, new.phys() | TABLE_FLAGS);
        }
        Ok(Table(new))
    }

    /// The next part of `addr..end` that has a leaf table. Every walk over a range comes by here: it gives the CPU
    /// away between two tables.
    #[inline]
    pub fn next_leaf(&self, addr: u64, end: u64) -> Option<LeafPart> {
        // The last call of each walk, which finds nothing, is none.
        if addr < end { self.find_leaf(addr, end) } else { None }
    }

    fn find_leaf(&self, mut addr: u64, end: u64) -> Option<LeafPart> {
        'from_root: while addr < end {
            cond_resched();
            let mut table = self.root;
            for level in (2..LEVELS).rev() {
                let entry = table.get(index_at(addr, level));
                if entry == 0 {
                    let span = 1u64 << (12 + 9 * level);
                    addr = (addr & !(span - 1)) + span;
                    continue 'from_root;
                }
                table = Table(frame_of(entry));
            }
            // One table of leaf tables: at most 512 short steps before the CPU is given away again.
            let entry = loop {
                let index = index_at(addr, 1);
                let entry = table.get(index);
                if entry != 0 {
                    break entry;
                }
                addr = (addr & !(LEAF_SPAN - 1)) + LEAF_SPAN;
                if index == 511 || addr >= end {
                    continue 'from_root;
                }
            };
            let (table, state) = (leaf_of(entry), LeafState::of(entry));
            let leaf_end = ((addr & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(end);
            let first = index_at(addr, 0);
            let count = ((leaf_end - addr) / PAGE_SIZE as u64) as usize;
            return Some(LeafPart { table, addr, range: first..first + count, state });
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

    /// The first page of `start..end` that has a leaf entry.
    pub fn next_entry(&self, start: u64, end: u64) -> Option<u64> {
        let mut at = start;
        while let Some(part) = self.next_leaf(at, end) {
            if let Some(index) = part.range.clone().find(|&index| part.table.get(index) != 0) {
                return Some(part.addr_of(index));
            }
            at = part.addr_of(part.range.end);
        }
        None
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
        self.last = (NO_LEAF, self.root);
        let (mut freed, programs) = (0, self.programs);
        free_below(self.root, LEVELS - 1, start, end, &free_range, &mut |level, index, table| {
            if let Some(programs) = programs
                && level == LEVELS - 1
            {
                programs.replace(index, 0);
            }
            freed += 1;
            free(table);
        });
        self.tables -= freed;
    }

    /// Clears everything, handing each entry that holds a reference to `owned(addr, entry)`, and gives all
    /// tables back. For a space that no CPU has loaded.
    pub fn tear_down(&mut self, owned: &mut impl FnMut(u64, u64)) {
        self.last = (NO_LEAF, self.root);
        #[cfg(debug_assertions)]
        if self.programs.is_some() {
            assert_agree(self.roots());
        }
        if let Some(programs) = self.programs.take() {
            programs.take_all(|_, _| ());
            programs.0.meta().set_word(0);
            frames::free_root(programs.0, Root::Programs);
        }
        // The mask knows of entries for users only.
        self.root.take_all(|top, entry| {
            let upper = Table(frame_of(entry));
            upper.take_all(|middle, entry| {
                let directory = Table(frame_of(entry));
                directory.take_all(|low, entry| {
                    cond_resched();
                    let base = (top << 39 | middle << 30 | low << 21) as u64;
                    clear_leaf(entry, base, owned);
                });
                frames::free_table(directory.0);
            });
            frames::free_table(upper.0);
        });
        self.root.0.meta().set_word(0);
        behind::count(-i64::from(self.large));
        (self.tables, self.shared, self.large) = (0, 0, 0);
        frames::free_root(self.root.0, Root::Kernels);
    }
}

/// Gives up the leaf table that `entry` points to and which maps addresses from `base` on.
#[inline]
fn clear_leaf(entry: u64, base: u64, owned: &mut impl FnMut(u64, u64)) {
    let leaf = match LeafState::of(entry) {
        LeafState::Large => return behind::release(behind::behind(entry)),
        state => {
            let leaf = Table(frame_of(entry));
            if state == LeafState::Shared && !leaf.0.meta().drop_sharer() {
                // Others have it still.
                return;
            }
            leaf
        }
    };
    leaf.clear(|index, entry| owned(base | (index as u64) << 12, entry));
    frames::free_table(leaf.0);
}

/// A root for the program beside the kernel's, which is given back if there is no memory.
#[cold]
fn programs_root(kernels: Table) -> Result<Table> {
    let root = frames::alloc_root(Root::Programs);
    root.map(Table).ok_or_else(|| {
        frames::free_root(kernels.0, Root::Kernels);
        Errno::ENOMEM
    })
}

/// Panics unless the two roots have the same tables below, and the kernel's forbids to run what they map: how many entries there are.
pub(in crate::mm) fn assert_agree(roots: Roots) -> usize {
    let [kernels, programs] =
        [roots.kernels, roots.programs].map(|root| Table(Pfn::of_phys(root.as_u64())));
    let (accessed, nx) = (PteFlags::ACCESSED.bits(), page::nx().bits());
    let mut used = 0;
    for index in 0..256 {
        let (kernels, programs) = (kernels.get(index), programs.get(index));
        assert_eq!(kernels & !nx & !accessed, programs & !accessed, "entry {index}");
        assert!(kernels == 0 || kernels & nx == nx, "the kernel could run a program's code");
        used += usize::from(programs != 0);
    }
    used
}

fn free_below(
    table: Table,
    level: u32,
    start: u64,
    end: u64,
    free_range: &Range<u64>,
    free: &mut dyn FnMut(u32, usize, Pfn),
) {
    let span = 1u64 << (12 + 9 * level);
    let mut base = start & !(span - 1);
    while base < end {
        cond_resched();
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
                debug_assert!(
                    level > 1 || LeafState::of(entry) == LeafState::Own,
                    "a page table that is shared or behind a large page outlives its pages"
                );
                table.replace(index, 0);
                free(level, index, below.0);
            }
        }
        base += span;
    }
}
