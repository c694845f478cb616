//! Keeping TLBs true: which CPUs have a space loaded, and what is flushed where.
//!
//! Invariant: a frame or table that a page-table entry pointed to is given back only after every CPU that
//! may have the entry in its TLB has flushed it. [`Gather`] collects what is taken out of page tables, then
//! flushes, then frees.

use super::table::{ACCESSED, OWNED, frame_of};
use crate::arch::page;
use crate::arch::percpu::{cpu_id, cpus_online};
use crate::mm::frames::{self, Pfn};
use crate::sync::Once;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Flushes the TLBs of other CPUs: a mask of CPUs, and the addresses, or all of the space if `None`. Must have
/// run [`AddressSpace::flush_here`](super::AddressSpace::flush_here) on each of them when it returns; may be
/// called with interrupts on, and must answer such requests while it waits.
pub type RemoteFlush = fn(cpus: u64, pages: Option<&[u64]>);

static REMOTE: Once<RemoteFlush> = Once::new();

/// Sets how other CPUs are made to flush: called when further CPUs are started.
#[expect(dead_code, reason = "for the bring-up of further CPUs")]
pub fn register_remote(flush: RemoteFlush) {
    REMOTE.call_once(|| flush);
}

/// The CPUs that have a space loaded.
#[derive(Default)]
pub(super) struct CpuMask(AtomicU64);

impl CpuMask {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn add(&self, cpu: usize) {
        // AcqRel: pairs with the load in `flush`: a CPU that adds itself later than a page-table change loads
        // CR3 after it and sees the change.
        self.0.fetch_or(1 << cpu, Ordering::AcqRel);
    }

    pub fn remove(&self, cpu: usize) {
        self.0.fetch_and(!(1 << cpu), Ordering::AcqRel);
    }

    pub fn get(&self) -> u64 {
        // Acquire: pairs with `add`.
        self.0.load(Ordering::Acquire)
    }

    /// Flushes `pages`, or everything, wherever the space is loaded.
    pub fn flush(&self, pages: Option<&[u64]>) {
        let cpus = self.get();
        let here = 1 << cpu_id();
        if cpus & here != 0 {
            match pages {
                Some(pages) => pages.iter().for_each(|&addr| page::invlpg(addr)),
                None => page::flush_tlb(),
            }
        }
        if cpus & !here != 0
            && let Some(remote) = REMOTE.get()
        {
            remote(cpus & !here, pages);
        }
    }
}

/// A memory barrier on `cpus` (those that run).
pub(super) fn barrier(cpus: u64) {
    let online = 1u64.checked_shl(cpus_online() as u32).map_or(u64::MAX, |bit| bit - 1);
    let others = cpus & online & !(1 << cpu_id());
    // SeqCst: the barrier of this CPU; the others' come with the interrupt.
    core::sync::atomic::fence(Ordering::SeqCst);
    if others != 0
        && let Some(remote) = REMOTE.get()
    {
        remote(others, Some(&[]));
    }
}

/// Most pages that are flushed one by one.
const SINGLE: usize = 32;
/// Most frames that wait for a flush.
const WAITING: usize = 64;

/// What was taken out of page tables and waits for the flush.
pub(super) struct Gather<'a> {
    cpus: &'a CpuMask,
    pages: ArrayVec<u64, SINGLE>,
    /// More pages than fit: everything is flushed.
    all: bool,
    frames: ArrayVec<u32, WAITING>,
    tables: ArrayVec<u32, WAITING>,
}

impl<'a> Gather<'a> {
    #[inline]
    pub fn new(cpus: &'a CpuMask) -> Self {
        let (pages, frames, tables) = (ArrayVec::new(), ArrayVec::new(), ArrayVec::new());
        Self { cpus, pages, all: false, frames, tables }
    }

    /// Notes that `entry`, which mapped `addr`, was changed. A CPU keeps no entry that it never used, which
    /// the accessed bit shows.
    #[inline(always)]
    pub fn changed(&mut self, addr: u64, entry: u64) {
        if entry & ACCESSED != 0 && self.pages.try_push(addr).is_err() {
            self.all = true;
        }
    }

    /// Notes that `entry`, which mapped `addr` and holds a reference, was taken out; the reference goes with
    /// the flush.
    #[inline]
    pub fn removed(&mut self, addr: u64, entry: u64) {
        debug_assert!(entry & OWNED != 0);
        self.changed(addr, entry);
        if self.frames.is_full() {
            self.flush();
        }
        self.frames.push(frame_of(entry).0);
    }

    /// Notes that a table was taken out.
    pub fn table(&mut self, table: Pfn) {
        if self.tables.is_full() {
            self.flush();
        }
        self.tables.push(table.0);
    }

    /// Flushes and frees all that was noted.
    pub fn flush(&mut self) {
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
        self.pages.clear();
        self.all = false;
    }
}

impl Drop for Gather<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.all || !(self.pages.is_empty() && self.frames.is_empty() && self.tables.is_empty())
        {
            self.flush();
        }
    }
}
