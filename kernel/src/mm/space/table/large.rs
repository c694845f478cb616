//! Large pages: entries one level above the leaves that map 2 MiB of private memory each.
//!
//! A leaf table stands behind each, with the same 512 pages one by one, so that whatever only looks at page tables finds them
//! there, and a large page is opened, before some of it changes, by one store that cannot fail. The frames have a
//! reference each, as all private pages have, so that an opened page needs no count.
//!
//! Invariants:
//! - A large page is present and writable, and lies in mappings of private memory without a file that may be written.
//! - The word of its first frame's metadata is the number of the table behind it, whose entries are all present, owned, writable
//!   and dirty, and point to its frames in order.
//! - No entry of another size is made for an address before every CPU has forgotten the old one.
//!
//! Owns the tables behind (`behind`). Never shares a large page: fork opens it, and shares its
//! table. Locks: the space's, which the caller holds.

use super::behind::{behind, count, count_opened, set_behind};
use super::entries::{ACCESSED, DIRTY, LARGE, OWNED, Table, WRITABLE, frame_of};
use super::table::{LEAF_SPAN, LeafPart, LeafState, NO_LEAF, PageTable, TABLE_FLAGS, index_at};
use super::tlb::CpuMask;
use crate::base::PAGE_SIZE;
use crate::mm::frames::{self, LARGE_PAGES, Pfn};
use crate::mm::space::request::VmFlags;
use crate::mm::space::vma::Vma;
use abi::{Errno, Result};

/// The flags of a mapping's large pages, which may be written: only a mapping that lets the program write has them.
#[derive(Clone, Copy, Debug)]
pub(in crate::mm::space) struct LargeFlags(u64);

impl LargeFlags {
    /// Those of `vma`; none if it may not have large pages now.
    pub fn of(vma: &Vma) -> Option<Self> {
        let may = vma.can_be_large() && vma.flags.contains(VmFlags::WRITE);
        may.then(|| Self(vma.entry_flags() | OWNED | WRITABLE | ACCESSED | DIRTY))
    }
}

impl PageTable {
    /// The frame that a large page has for `addr`.
    pub fn large_at(&self, addr: u64) -> Option<Pfn> {
        let (directory, index) = self.directory(addr)?;
        let entry = directory.get(index);
        let inner = index_at(addr, 0) as u32;
        (entry & LARGE != 0).then(|| Pfn(frame_of(entry).0 + inner))
    }

    /// Where the page ends that maps `addr`, whatever its size.
    pub fn page_end(&self, addr: u64) -> u64 {
        let is_large = self.large != 0 && self.large_at(addr).is_some();
        let size = if is_large { LEAF_SPAN } else { PAGE_SIZE as u64 };
        (addr & !(size - 1)) + size
    }

    /// Whether the 2 MiB around `addr` have no leaf table yet.
    pub fn is_bare(&self, addr: u64) -> bool {
        self.directory(addr).is_none_or(|(directory, index)| directory.get(index) == 0)
    }

    /// Maps a block of frames, which the page tables own from then on, as the large page around `addr`, where nothing is mapped
    /// and no table is. `ENOMEM` if there is no memory for tables: then the block stays the caller's.
    pub fn set_large(&mut self, addr: u64, first: Pfn, flags: LargeFlags) -> Result<()> {
        self.directory_or_alloc(addr)?;
        let table = Table(frames::alloc_table().ok_or(Errno::ENOMEM)?);
        self.tables += 1;
        self.put_large(addr, first, flags, table);
        Ok(())
    }

    /// As [`set_large`](Self::set_large), with an empty table of the space's for what stands behind, where there was one before. No CPU
    /// has an entry for these addresses.
    pub fn put_large(&mut self, addr: u64, first: Pfn, flags: LargeFlags, table: Table) {
        let Some((directory, index)) = self.directory(addr) else { return };
        debug_assert!(directory.get(index) == 0, "a large page over something else");
        table.fill_block(first, flags.0);
        let entry = table.get(0);
        set_behind(first, table);
        directory.set_below(index, entry & !OWNED | LARGE);
        self.last = (NO_LEAF, self.root);
        self.large += 1;
        count(1);
    }

    /// Takes the space's own table of all of `part` out, so that no CPU has one of its entries any more.
    pub fn take_leaf(&mut self, part: &LeafPart, cpus: &CpuMask) -> Table {
        debug_assert!(part.is_own() && part.range == (0..LARGE_PAGES));
        if let Some((directory, index)) = self.directory(part.addr) {
            directory.replace(index, 0);
        }
        self.last = (NO_LEAF, self.root);
        cpus.flush(None);
        part.table
    }

    /// Makes the table behind the large page around `addr` an ordinary one.
    #[cold]
    pub(super) fn open(
        &mut self,
        directory: Table,
        index: usize,
        addr: u64,
        cpus: &CpuMask,
    ) -> Table {
        let table = behind(directory.get(index));
        directory.replace(index, 0);
        // Who comes now waits for the lock of the space.
        cpus.flush(Some(&[addr & !(LEAF_SPAN - 1)]));
        directory.replace(index, table.0.phys() | TABLE_FLAGS);
        self.large -= 1;
        count_opened();
        table
    }

    /// Takes out the large page of which this is the whole table: the table. The caller flushes, then gives it to [`release`](super::behind::release).
    pub fn detach_large(&mut self, part: &LeafPart) -> Option<Table> {
        debug_assert!(part.state == LeafState::Large && part.range == (0..LARGE_PAGES));
        let (directory, index) = self.directory(part.addr)?;
        directory.replace(index, 0);
        self.large -= 1;
        self.tables -= 1;
        count(-1);
        Some(part.table)
    }
}
