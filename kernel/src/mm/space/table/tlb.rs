//! Keeping TLBs true: which CPUs have a space loaded, and what is flushed where.
//!
//! Invariant: a frame or table that a page-table entry pointed to is given back only after every CPU that
//! may have the entry in its TLB has flushed it. [`Gather`] collects what is taken out of page tables, then
//! flushes, then frees.
//!
//! Owns the mask of the CPUs that have a space loaded. Never waits for another CPU with a spinlock held. Locks: none; the space's is held
//! by whoever changes its tables.

use super::entries::{ACCESSED, OWNED, Table, assert_points_right, frame_of};
use super::shootdown::flush_on;
use super::{behind, share};
use crate::base::page;
use crate::base::percpu::{cpu_id, online_mask};
use crate::mm::frames::{self, Pfn};
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// The CPUs that have a space loaded.
#[derive(Default)]
pub(in crate::mm::space) struct CpuMask(AtomicU64);

impl CpuMask {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn add(&self, cpu: usize) {
        // SeqCst: pairs with the fence in `flush`. Either the flush sees this CPU, or this CPU, which walks the
        // tables only after this, sees the change that the flush is for.
        self.0.fetch_or(1 << cpu, Ordering::SeqCst);
    }

    pub fn remove(&self, cpu: usize) {
        // Release: pairs with the Acquire in `get`: the CPU has done with the space.
        self.0.fetch_and(!(1 << cpu), Ordering::Release);
    }

    pub fn get(&self) -> u64 {
        // Acquire: pairs with `remove`.
        self.0.load(Ordering::Acquire)
    }

    /// Flushes `pages`, or everything, wherever the space is loaded.
    pub fn flush(&self, pages: Option<&[u64]>) {
        // SeqCst: pairs with `add`.
        fence(Ordering::SeqCst);
        let cpus = self.get();
        let here = 1 << cpu_id();
        if cpus & here != 0 {
            match pages {
                Some(pages) => pages.iter().for_each(|&addr| page::invlpg(addr)),
                None => page::flush_tlb(),
            }
        }
        if cpus & !here != 0 {
            flush_on(cpus & !here, pages);
        }
    }

    /// Drops the entry for `addr` from this CPU's TLB, if the space is loaded anywhere.
    #[inline]
    pub fn forget_here(&self, addr: u64) {
        if self.get() != 0 {
            page::invlpg(addr);
        }
    }

    /// Whether another CPU may have entries of the space.
    fn is_elsewhere(&self) -> bool {
        // SeqCst: as in `flush`.
        fence(Ordering::SeqCst);
        self.get() & !(1 << cpu_id()) != 0
    }
}

/// A memory barrier on `cpus` (those that run).
pub(super) fn barrier(cpus: u64) {
    let others = cpus & online_mask() & !(1 << cpu_id());
    // SeqCst: the barrier of this CPU; the others' come with the interrupt.
    fence(Ordering::SeqCst);
    if others != 0 {
        flush_on(others, Some(&[]));
    }
}

/// Makes every CPU forget pages of the kernel's own area, at most `SINGLE` of them. The caller holds no lock.
pub(in crate::mm) fn flush_kernel(pages: &[u64]) {
    // SeqCst: the change of the tables comes before.
    fence(Ordering::SeqCst);
    pages.iter().for_each(|&addr| page::invlpg(addr));
    let others = online_mask() & !(1 << cpu_id());
    if others != 0 && !pages.is_empty() {
        flush_on(others, Some(pages));
    }
}

/// Most pages that are flushed one by one.
pub(in crate::mm) const SINGLE: usize = 32;
/// Most frames that wait for a flush.
const WAITING: usize = 192;
/// Most tables that wait for a flush.
const TABLES: usize = 64;
/// Most shared tables that wait for a flush.
const SHARED: usize = 8;
/// Most large pages that wait for a flush.
const LARGE: usize = 16;

/// A page-table entry as it was at the moment of its change, which is all that [`Gather`] goes by.
#[derive(Clone, Copy)]
pub(in crate::mm) struct Was(u64);

impl Was {
    /// Puts `new` into the slot from which `seen` was read. An entry that was never used is swapped: between a look
    /// and a store the CPU could come to use it (speculation is enough), and would keep what nobody flushes.
    #[inline(always)]
    pub fn exchange(slot: &AtomicU64, seen: u64, new: u64) -> Self {
        assert_points_right(new);
        // Relaxed: the lock of the space orders the software; a swap is one access for the CPU's walker too.
        if seen & ACCESSED == 0 {
            return Self(slot.swap(new, Ordering::Relaxed));
        }
        slot.store(new, Ordering::Relaxed);
        Self(seen)
    }

    /// An entry that is flushed whether it was used or not; it is changed only later.
    #[inline]
    pub fn used(seen: u64) -> Self {
        Self(seen | ACCESSED)
    }

    /// The entry.
    #[inline(always)]
    pub fn entry(self) -> u64 {
        self.0
    }
}

/// What was taken out of page tables and waits for the flush.
pub(in crate::mm::space) struct Gather<'a> {
    cpus: &'a CpuMask,
    pages: ArrayVec<u64, SINGLE>,
    /// More pages than fit: everything is flushed.
    all: bool,
    /// Some entries were seen unused, and not noted.
    unused: bool,
    frames: ArrayVec<u32, WAITING>,
    tables: ArrayVec<u32, TABLES>,
    /// Tables of which this space gives up its share.
    shared: ArrayVec<u32, SHARED>,
    /// Tables behind large pages, which go with them.
    large: ArrayVec<u32, LARGE>,
}

impl<'a> Gather<'a> {
    #[inline]
    pub fn new(cpus: &'a CpuMask) -> Self {
        Self {
            cpus,
            pages: ArrayVec::new(),
            all: false,
            unused: false,
            frames: ArrayVec::new(),
            tables: ArrayVec::new(),
            shared: ArrayVec::new(),
            large: ArrayVec::new(),
        }
    }

    /// The CPUs that are flushed.
    pub fn cpus(&self) -> &'a CpuMask {
        self.cpus
    }

    /// Notes that everything has to be looked at anew.
    pub fn everything(&mut self) {
        self.all = true;
    }

    /// Notes that the entry `was`, which mapped `addr`, was changed. A CPU keeps no entry that it never used, which
    /// the accessed bit shows.
    #[inline(always)]
    pub fn changed(&mut self, addr: u64, was: Was) {
        if was.0 & ACCESSED == 0 {
            self.unused = true;
        } else {
            self.page(addr);
        }
    }

    /// Clears the slot from which `seen` was read, of an entry that holds no reference, and notes that: one look at
    /// what was used.
    #[inline(always)]
    pub fn clear(&mut self, addr: u64, slot: &AtomicU64, seen: u64) {
        let was = Was::exchange(slot, seen, 0);
        if seen & ACCESSED != 0 { self.page(addr) } else { self.changed(addr, was) }
    }

    #[inline(always)]
    fn page(&mut self, addr: u64) {
        if self.pages.try_push(addr).is_err() {
            self.all = true;
        }
    }

    /// Notes that the entry `was`, which mapped `addr` and holds a reference, was taken out; the reference goes
    /// with the flush.
    #[inline]
    pub fn removed(&mut self, addr: u64, was: Was) {
        debug_assert!(was.0 & OWNED != 0);
        self.changed(addr, was);
        if self.frames.is_full() {
            self.flush();
        }
        self.frames.push(frame_of(was.0).0);
    }

    /// Notes that a table was taken out.
    pub fn table(&mut self, table: Pfn) {
        if self.tables.is_full() {
            self.flush();
        }
        self.tables.push(table.0);
    }

    /// Notes that a table that others have too was taken out.
    pub fn shared_table(&mut self, table: Table) {
        if self.shared.is_full() {
            self.flush();
        }
        self.shared.push(table.0.0);
        self.all = true;
    }

    /// Notes that the large page at `addr` was taken out, of which this is the table.
    pub fn large(&mut self, addr: u64, table: Table) {
        if self.large.is_full() {
            self.flush();
        }
        self.large.push(table.0.0);
        // One address is enough: a CPU drops the whole translation that it is in.
        self.page(addr);
    }

    /// Flushes and frees all that was noted.
    pub fn flush(&mut self) {
        if core::mem::take(&mut self.unused) && self.cpus.is_elsewhere() {
            self.all = true;
        }
        if self.all || !self.tables.is_empty() {
            self.cpus.flush(None);
        } else if !self.pages.is_empty() {
            self.cpus.flush(Some(&self.pages));
        }
        for frame in self.frames.drain(..) {
            frames::put(Pfn(frame));
        }
        for table in self.tables.drain(..) {
            frames::free_table(Pfn(table));
        }
        for table in self.shared.drain(..) {
            share::release(Table(Pfn(table)));
        }
        for table in self.large.drain(..) {
            behind::release(Table(Pfn(table)));
        }
        self.pages.clear();
        self.all = false;
    }
}

impl Drop for Gather<'_> {
    #[inline]
    fn drop(&mut self) {
        let pending = !(self.pages.is_empty() && self.frames.is_empty() && self.tables.is_empty());
        if self.all || self.unused || pending {
            self.flush();
        }
    }
}
