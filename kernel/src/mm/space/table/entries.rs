//! [`Table`]: the entries of one user page table.
//!
//! Invariants:
//! - The word of a table's metadata has bit `g` set whenever one of the entries `8g..8g+8` is not zero: what
//!   is done to all entries skips the others. Bits are cleared only with the whole table.
//! - Bit `g` of its reference field, which tables do not need, is set whenever one of `16g..16g+16` is owned; of a table
//!   of tables, bit `n` whenever one of the entries whose number is `n` modulo 32 is not zero.
//! - A leaf entry that is not zero points to a frame. With `OWNED` it holds one reference to the frame;
//!   without, the frame is the page cache's (see there) or the shared zero page.
//! - An entry with `OWNED` but without `PRESENT` is a page of a mapping that allows no access. It has all bits of `NOWHERE`, and no
//!   other has one of them.
//!
//! Owns nothing: a [`Table`] is a frame's number, whose frame `table` gives back. Never changes an entry without its
//! group's bit. Locks: the space's, which the caller holds; only the CPUs themselves write besides, and only the accessed
//! and dirty bits, so plain loads and stores (Relaxed) are enough.

use crate::base::PAGE_SIZE;
use crate::base::page::{FRAMES_END, NOWHERE, PTE_ADDRESS, PteFlags};
use crate::mm::frames::Pfn;
use core::num::NonZeroU64;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// The entry holds a reference to its frame.
pub(in crate::mm::space) const OWNED: u64 = PteFlags::SOFT_0.bits();
/// The entry maps the shared page of zeros.
pub(in crate::mm::space) const ZERO: u64 = PteFlags::SOFT_1.bits();
/// The page was made ahead by exec because programs write it.
pub(in crate::mm::space) const KNOWN: u64 = PteFlags::SOFT_2.bits();
pub(in crate::mm) const PRESENT: u64 = PteFlags::PRESENT.bits();
pub(in crate::mm) const WRITABLE: u64 = PteFlags::WRITABLE.bits();
pub(in crate::mm) const ACCESSED: u64 = PteFlags::ACCESSED.bits();
pub(in crate::mm::space) const DIRTY: u64 = PteFlags::DIRTY.bits();
/// The entry, one level above the leaves, maps 2 MiB itself.
pub(super) const LARGE: u64 = PteFlags::LARGE.bits();

/// The frame that an entry points to.
#[inline]
pub(in crate::mm::space) fn frame_of(entry: u64) -> Pfn {
    Pfn::of_phys(entry & PTE_ADDRESS & (FRAMES_END - 1))
}

/// The flags of an entry that allows no access.
#[inline]
pub(in crate::mm::space) fn closed(flags: u64) -> u64 {
    flags & !PRESENT | NOWHERE
}

/// The entry again allows what its flags say.
#[inline]
pub(in crate::mm::space) fn opened(entry: u64) -> u64 {
    entry & !NOWHERE | PRESENT
}

/// In the checking kernel: panics if an entry points to memory without being present, or to none though it is.
#[inline(always)]
pub(super) fn assert_points_right(entry: u64) {
    let wanted = if entry & PRESENT != 0 || entry == 0 { 0 } else { NOWHERE };
    debug_assert!(entry & NOWHERE == wanted, "a closed entry points to memory: {entry:#x}");
}

/// One table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::mm::space) struct Table(pub Pfn);

/// Bytes that a group of eight entries of a leaf table maps.
pub(in crate::mm::space) const GROUP_SPAN: u64 = 8 * PAGE_SIZE as u64;

/// Up to eight neighbouring entries of a table that may not all be zero.
pub(in crate::mm::space) struct Group {
    pub first: usize,
    pub end: usize,
    /// Whether any of them may have `OWNED`.
    pub owned: bool,
}

/// Which groups of eight entries are copied in which way, a bit for each.
pub struct CopyPlan {
    /// Whole ones that hold no references, of which the other table has nothing.
    pub plain: u64,
    /// The same, but one of the entries may hold a reference.
    pub owning: u64,
    /// All others.
    pub others: u64,
}

/// The numbers of the bits that are set.
#[inline(always)]
pub fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let rest = NonZeroU64::new(mask)?;
        mask &= mask.wrapping_sub(1);
        Some(rest.trailing_zeros() as usize)
    })
}

/// Which entries of a group pass a test, a bit for each. A loop over the bits is shorter than one over the entries that
/// asks each: of most groups few pass.
#[inline(always)]
fn mask_of(group: &[AtomicU64; 8], test: impl Fn(u64) -> bool) -> u64 {
    let bit = |(n, entry): (usize, &AtomicU64)| u64::from(test(entry.load(Ordering::Relaxed))) << n;
    group.iter().enumerate().fold(0, |mask, one| mask | bit(one))
}

/// Each bit of a mask of groups of sixteen as two, of groups of eight.
#[inline]
const fn each_twice(mask: u32) -> u64 {
    let wide = mask as u64;
    let wide = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
    let wide = (wide | wide << 8) & 0x00ff_00ff_00ff_00ff;
    let wide = (wide | wide << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let wide = (wide | wide << 2) & 0x3333_3333_3333_3333;
    let wide = (wide | wide << 1) & 0x5555_5555_5555_5555;
    wide * 3
}

const _: () = assert!(each_twice(0x8000_0005) == 0xc000_0000_0000_0033, "bits 0, 2 and 31");

impl Table {
    #[inline(always)]
    fn entries(self) -> &'static [AtomicU64; 512] {
        // SAFETY: a table is a frame in the direct map that stays one while its owner's lock is held; CPUs
        // read and write entries as atomic words.
        unsafe { &*self.0.ptr().cast::<[AtomicU64; 512]>() }
    }

    #[inline(always)]
    pub(in crate::mm::space) fn entry(self, index: usize) -> &'static AtomicU64 {
        debug_assert!(index < 512);
        &self.entries()[index & 511]
    }

    #[inline(always)]
    pub fn get(self, index: usize) -> u64 {
        self.entry(index).load(Ordering::Relaxed)
    }

    /// The entries of a whole group.
    #[inline(always)]
    pub fn get_group(self, first: usize) -> [u64; 8] {
        let entries = &self.entries()[first & 504..][..8];
        core::array::from_fn(|n| entries[n].load(Ordering::Relaxed))
    }

    /// Stores an entry over one that is zero or holds no reference: a page that is owned would never be given back.
    #[inline]
    pub fn set(self, index: usize, entry: u64) {
        debug_assert!(self.get(index) & OWNED == 0, "an owned page was mapped over");
        let meta = self.0.meta();
        meta.set_word(meta.word() | 1 << (index / 8));
        if entry & OWNED != 0 {
            meta.set_refs_raw(meta.refs_raw() | 1 << (index / 16));
        }
        self.replace(index, entry);
    }

    /// Stores the entry of a table below over one that is zero.
    #[inline(always)]
    pub(super) fn set_below(self, index: usize, entry: u64) {
        let meta = self.0.meta();
        meta.set_word(meta.word() | 1 << (index / 8));
        meta.set_refs_raw(meta.refs_raw() | 1 << (index % 32));
        self.replace(index, entry);
    }

    /// Stores over an entry that is not zero without making it owned, or stores zero. What the old one held is the
    /// caller's.
    #[inline(always)]
    pub fn replace(self, index: usize, entry: u64) {
        assert_points_right(entry);
        self.entry(index).store(entry, Ordering::Relaxed);
    }

    /// Maps `frames` (0 for none) from entry `first` on, where nothing is mapped yet: how many were. They are
    /// borrowed: `flags` has no `OWNED`.
    #[inline]
    pub fn fill(self, first: usize, frames: &[u32], flags: u64) -> i64 {
        debug_assert!(flags & OWNED == 0 && first + frames.len() <= 512);
        if frames.is_empty() {
            return 0;
        }
        let meta = self.0.meta();
        let (groups, touched) = (meta.word(), group_mask(first, first.wrapping_add(frames.len())));
        meta.set_word(groups | touched);
        let Some(entries) = self.entries().get(first..first.wrapping_add(frames.len())) else {
            return 0;
        };
        let mut filled = 0i64;
        if groups & touched == 0 {
            for (entry, &frame) in entries.iter().zip(frames) {
                let new = if frame != 0 { Pfn(frame).phys() | flags } else { 0 };
                filled = filled.wrapping_add(i64::from(frame != 0));
                entry.store(new, Ordering::Relaxed);
            }
            return filled;
        }
        for (entry, &frame) in entries.iter().zip(frames) {
            if frame != 0 && entry.load(Ordering::Relaxed) == 0 {
                entry.store(Pfn(frame).phys() | flags, Ordering::Relaxed);
                filled = filled.wrapping_add(1);
            }
        }
        filled
    }

    /// As [`fill`](Self::fill), for those of `frames` whose bit is set in `bits`.
    // Not inlined: its loop needs the registers.
    #[inline(never)]
    pub fn fill_marked(self, first: usize, frames: &[u32], mut bits: u64, flags: u64) -> i64 {
        let (entries, meta) = (self.entries(), self.0.meta());
        let (mut groups, mut filled) = (meta.word(), 0i64);
        while bits != 0 {
            let n = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            let Some(&frame) = frames.get(n) else { break };
            let index = first.wrapping_add(n) & 511;
            let entry = &entries[index];
            if frame != 0 && entry.load(Ordering::Relaxed) == 0 {
                groups |= 1 << (index / 8);
                entry.store(Pfn(frame).phys() | flags, Ordering::Relaxed);
                filled = filled.wrapping_add(1);
            }
        }
        meta.set_word(groups);
        filled
    }

    /// Brings the masks up to date after entries of `range` were copied from `other` with `replace`.
    #[inline]
    pub fn inherit_masks(self, other: Table, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (meta, from) = (self.0.meta(), other.0.meta());
        meta.set_word(meta.word() | from.word() & group_mask(range.start, range.end));
        // A group may be said to own something though it does not: that costs a look at it.
        meta.set_refs_raw(meta.refs_raw() | from.refs_raw());
    }

    /// Fills this empty table with a block of frames, each with these flags.
    pub(super) fn fill_block(self, first: Pfn, flags: u64) {
        let meta = self.0.meta();
        meta.set_word(u64::MAX);
        meta.set_refs_raw(u32::MAX);
        for (frame, entry) in (first.0..).zip(self.entries()) {
            entry.store(Pfn(frame).phys() | flags, Ordering::Relaxed);
        }
    }

    /// The block of frames that fills the table, in order, each held by its entry: nothing has to be moved to make it a large page.
    pub(in crate::mm::space) fn block(self) -> Option<Pfn> {
        let first = frame_of(self.get(0)).0;
        let fits = |(frame, entry): (u32, &AtomicU64)| {
            let entry = entry.load(Ordering::Relaxed);
            frame_of(entry).0 == frame && entry & OWNED != 0
        };
        let fills = first.is_multiple_of(512) && (first..).zip(self.entries()).all(fits);
        fills.then_some(Pfn(first))
    }

    /// Zeroes all entries; what they held is the caller's.
    pub(super) fn clear_all(self) {
        for entry in self.entries() {
            entry.store(0, Ordering::Relaxed);
        }
    }

    /// The mask of groups of 16 that may hold references.
    #[inline(always)]
    pub fn owners(self) -> u32 {
        self.0.meta().refs_raw()
    }

    /// How the entries of `range` are best copied to a table that has `self`'s place elsewhere, and has got some already.
    pub fn plan_copy(self, range: Range<usize>, to: Table) -> CopyPlan {
        let groups = self.0.meta().word() & group_mask(range.start, range.end);
        let (first, end) = (range.start.div_ceil(8), range.end / 8);
        let inside = if first < end { group_mask(first * 8, end * 8) } else { 0 };
        let fresh = groups & inside & !to.0.meta().word();
        let owning = each_twice(self.owners());
        CopyPlan { plain: fresh & !owning, owning: fresh & owning, others: groups & !fresh }
    }

    /// Copies a whole group of entries that hold no references; the masks are the caller's business.
    #[inline(always)]
    pub fn copy_group(self, first: usize, other: Table) {
        for (to, from) in self.group(first).iter().zip(other.group(first)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The entries of the whole group that `first` is in.
    #[inline(always)]
    pub fn group(self, first: usize) -> &'static [AtomicU64; 8] {
        let (groups, _) = self.entries().as_chunks();
        &groups[(first / 8) & 63]
    }

    /// The entries of a group with their places.
    #[inline(always)]
    pub fn slots(self, group: &Group) -> impl Iterator<Item = (usize, &'static AtomicU64)> {
        let first = group.first & 511;
        let count = group.end.wrapping_sub(group.first).min(8);
        (first..).zip(self.entries()[first..].iter().take(count))
    }

    /// Whether the entries of `range` are known to be zero.
    #[inline]
    pub fn is_empty(self, range: Range<usize>) -> bool {
        range.is_empty() || self.0.meta().word() & group_mask(range.start, range.end) == 0
    }

    /// Visits the groups of `range` that may not be zero.
    #[inline(always)]
    pub fn for_each_group(self, range: Range<usize>, visit: impl FnMut(Group)) {
        if !range.is_empty() {
            let groups = self.0.meta().word() & group_mask(range.start, range.end);
            self.for_each_of(groups, range, visit);
        }
    }

    /// Visits some groups of `range`, of which `groups` has a bit each.
    #[inline(always)]
    pub fn for_each_of(self, mut groups: u64, range: Range<usize>, mut visit: impl FnMut(Group)) {
        let owned = self.0.meta().refs_raw();
        while groups != 0 {
            let group = groups.trailing_zeros();
            groups &= groups.wrapping_sub(1);
            let first = (group * 8) as usize;
            visit(Group {
                first: first.max(range.start),
                end: first.wrapping_add(8).min(range.end),
                owned: owned >> (group / 2) & 1 != 0,
            });
        }
    }

    /// Visits the entries of `range` that are not zero.
    #[inline(always)]
    pub fn for_each(self, range: Range<usize>, mut visit: impl FnMut(usize, u64)) {
        self.for_each_group(range, |group| {
            let mut index = group.first;
            while index < group.end {
                let entry = self.get(index);
                if entry != 0 {
                    visit(index, entry);
                }
                index = index.wrapping_add(1);
            }
        });
    }

    /// Clears everything, handing the entries that hold references to `owned`.
    #[inline(always)]
    pub(super) fn clear(self, mut owned: impl FnMut(usize, u64)) {
        let groups = self.0.meta().word();
        let owning = groups & each_twice(self.owners());
        let zero = |group: usize| {
            for entry in self.group(group * 8) {
                entry.store(0, Ordering::Relaxed);
            }
        };
        for group in bits(groups & !owning) {
            zero(group);
        }
        for group in bits(owning) {
            let entries = self.group(group * 8);
            for n in bits(mask_of(entries, |entry| entry & OWNED != 0)) {
                owned((group * 8) | n, entries[n & 7].load(Ordering::Relaxed));
            }
            zero(group);
        }
    }

    /// Takes out the entries of a table of tables, handing each to `below`.
    #[inline(always)]
    pub(super) fn take_all(self, mut below: impl FnMut(usize, u64)) {
        for group in bits(self.0.meta().word()) {
            let entries = self.group(group * 8);
            for n in bits(u64::from(self.0.meta().refs_raw() >> (group % 4 * 8) & 0xff)) {
                let slot = &entries[n & 7];
                let entry = slot.load(Ordering::Relaxed);
                if entry != 0 {
                    slot.store(0, Ordering::Relaxed);
                    below((group * 8) | n, entry);
                }
            }
        }
    }
}

/// The groups of eight that the entries `start..end` touch; the range is not empty.
#[inline(always)]
fn group_mask(start: usize, end: usize) -> u64 {
    let last = (end.wrapping_sub(1) / 8) as u32;
    u64::MAX.wrapping_shl((start / 8) as u32) & u64::MAX.wrapping_shr(63u32.wrapping_sub(last))
}
