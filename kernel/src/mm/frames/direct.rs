//! Pages that the direct map does not show: what only programs are to see (memfd_secret).
//!
//! The direct map consists of entries of 1 GiB and 2 MiB. Where a page is hidden they are replaced, for good, by tables of smaller
//! entries that say the same; so what hides pages costs TLB entries for as long as the machine runs, as on Linux.
//!
//! Owns the entries of the direct map after boot. Never hides a page that the kernel reads or writes by the direct map: who hides one
//! shows it again before anybody else gets it. Locks: `Heap`, as `vmalloc`'s.

use super::frames;
use super::pfn::{For, Pfn};
use super::root::kernel_root;
use crate::base::areas::DIRECT_MAP_BASE;
use crate::base::page::{NOWHERE, PTE_ADDRESS, PteFlags};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU64, Ordering};

static ENTRIES: SpinLock<(), level::Heap> = SpinLock::new(());
/// How many tables have replaced large entries. Relaxed: a statistic.
static TAKEN: AtomicU64 = AtomicU64::new(0);

const PRESENT: u64 = PteFlags::PRESENT.bits();
const LARGE: u64 = PteFlags::LARGE.bits();

/// Pages of tables that have replaced large entries, for good.
pub fn split_pages() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// An address of the direct map that CPUs may still know: the caller makes all of them forget it (`flush_kernel`).
#[must_use]
pub(in crate::mm) struct Stale(pub u64);

/// Takes a page out of the direct map: nobody in the kernel touches it from then on. `ENOMEM` if there is no memory for smaller
/// entries.
pub(in crate::mm) fn hide(frame: Pfn) -> Result<Stale> {
    let _guard = ENTRIES.lock();
    let entry = loop {
        match entry_for(frame) {
            (entry, 0) => break entry,
            (entry, level) => {
                let smaller = split(entry.load(Ordering::Relaxed), level)?;
                // In one piece: a CPU finds the large entry or the table, which say the same.
                entry.store(smaller, Ordering::Release);
            }
        }
    };
    // Relaxed: the lock orders the software; CPUs write only accessed and dirty bits, and the flush comes behind it.
    let value = entry.load(Ordering::Relaxed);
    debug_assert!(value & PRESENT != 0, "a page is hidden twice");
    entry.store(value & !PRESENT | NOWHERE, Ordering::Relaxed);
    Ok(Stale(frame.ptr() as u64))
}

/// Puts a hidden page into the direct map again, and zeroes it: what it held is for nobody else.
pub(in crate::mm) fn reveal(frame: Pfn) {
    {
        let _guard = ENTRIES.lock();
        let (entry, level) = entry_for(frame);
        assert!(level == 0, "a page is shown that was not hidden");
        let value = entry.load(Ordering::Relaxed);
        debug_assert!(value & PRESENT == 0, "a page is shown that was not hidden");
        // No CPU keeps that an entry is not present: there is nothing to flush.
        entry.store(frame.phys() | value & !PTE_ADDRESS | PRESENT, Ordering::Relaxed);
    }
    frame.clear();
}

/// Whether the direct map does not show a page: for the self test.
pub(in crate::mm) fn is_hidden(frame: Pfn) -> bool {
    let _guard = ENTRIES.lock();
    entry_for(frame).0.load(Ordering::Relaxed) & PRESENT == 0
}

/// The entry that maps a page in the direct map, and its level: 0 if it maps nothing else. The lock is held.
fn entry_for(frame: Pfn) -> (&'static AtomicU64, u32) {
    let addr = DIRECT_MAP_BASE + frame.phys();
    let mut table = kernel_root();
    for level in (1..4).rev() {
        let entry = entry_of(table, addr, level);
        let value = entry.load(Ordering::Relaxed);
        if value & LARGE != 0 {
            return (entry, level);
        }
        table = Pfn::of_phys(value & PTE_ADDRESS);
    }
    (entry_of(table, addr, 0), 0)
}

/// A table that says the same as a large entry of this level: the entry for it.
fn split(large: u64, level: u32) -> Result<u64> {
    let table = frames::alloc_zeroed(Owner::Kernel, For::Kernel).ok_or(Errno::ENOMEM)?;
    TAKEN.fetch_add(1, Ordering::Relaxed);
    let step = 1u64 << (12 + 9 * (level - 1));
    let flags = large & !PTE_ADDRESS & !(if level == 1 { LARGE } else { 0 });
    let first = large & PTE_ADDRESS;
    for n in 0..512 {
        entry_of(table, n << (12 + 9 * (level - 1)), level - 1)
            .store((first + n * step) | flags, Ordering::Relaxed);
    }
    Ok(table.phys() | (PteFlags::PRESENT | PteFlags::WRITABLE).bits())
}

fn entry_of(table: Pfn, addr: u64, level: u32) -> &'static AtomicU64 {
    let index = (addr >> (12 + 9 * level)) as usize & 511;
    // SAFETY: a table of the kernel's, which is never given back; entries are read and written as atomic words, by CPUs too.
    unsafe { &*table.ptr().cast::<AtomicU64>().wrapping_add(index) }
}
