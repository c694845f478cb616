//! Mappings in the kernel's own area, shared by all address spaces.
//!
//! The top-level entry for the area was made at boot and is in every address space, so a mapping made here
//! is seen by all. Who takes a mapping out flushes it on every CPU before the frame or the address is used again.
//! Owns the tables of the area. Never gives a table back. Locks: `Heap` for the tables; `Frames` ranks below it, because
//! tables are allocated under it.

use crate::base::page::{self, NOWHERE, PTE_ADDRESS, PteFlags};
use crate::mm::frames::root::kernel_root;
use crate::mm::frames::{self, For, Pfn};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU64, Ordering};

static TABLES: SpinLock<(), level::Heap> = SpinLock::new(());

/// How many tables were made.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Pages of the area's tables.
pub fn table_pages() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Maps `frame` at `addr`, writable and not executable.
pub(super) fn map(addr: u64, frame: Pfn) -> Result<()> {
    let _guard = TABLES.lock();
    let mut table = kernel_root();
    for level in (1..4).rev() {
        let entry = entry(table, addr, level);
        // SAFETY: `entry` points into a live kernel page table; the lock serialises changes.
        let mut value = unsafe { entry.read_volatile() };
        if value == 0 {
            let new = frames::alloc_zeroed(Owner::Kernel, For::Kernel).ok_or(Errno::ENOMEM)?;
            // Relaxed: a statistic.
            TAKEN.fetch_add(1, Ordering::Relaxed);
            value = new.phys() | (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
            // SAFETY: as above; the new table is all zeros.
            unsafe { entry.write_volatile(value) };
        }
        debug_assert!(value & PteFlags::LARGE.bits() == 0);
        table = Pfn::of_phys(value & PTE_ADDRESS);
    }
    let flags = PteFlags::PRESENT | PteFlags::WRITABLE | PteFlags::GLOBAL | page::nx();
    // SAFETY: as above; the entry was not present, and was flushed if it ever was, so no TLB knows another translation.
    unsafe { entry(table, addr, 0).write_volatile(frame.phys() | flags.bits()) };
    Ok(())
}

/// Takes the page at `addr` out: its frame, or `None` if there is no such page. The caller flushes `addr` on every
/// CPU before anybody else gets the frame.
pub(super) fn unmap(addr: u64) -> Option<Pfn> {
    let _guard = TABLES.lock();
    let entry = leaf_entry(addr)?;
    // SAFETY: `leaf_entry` points into a live kernel page table; the lock serialises changes.
    let value = unsafe { entry.read_volatile() };
    if value & PteFlags::PRESENT.bits() == 0 {
        return None;
    }
    // SAFETY: as above.
    unsafe { entry.write_volatile(0) };
    Some(Pfn::of_phys(value & PTE_ADDRESS))
}

/// Leaves a number in the entry of `addr`, where nothing is mapped.
pub(super) fn set_note(addr: u64, note: u32) {
    let _guard = TABLES.lock();
    if let Some(entry) = leaf_entry(addr) {
        let elsewhere = if note == 0 { 0 } else { NOWHERE };
        // SAFETY: as in `unmap`; a value without the lowest bit maps nothing.
        unsafe { entry.write_volatile(u64::from(note) << 1 | elsewhere) };
    }
}

/// The number that was left at `addr`.
pub(super) fn note(addr: u64) -> u32 {
    let _guard = TABLES.lock();
    // SAFETY: as in `unmap`.
    leaf_entry(addr).map_or(0, |entry| unsafe { (entry.read_volatile() >> 1) as u32 })
}

/// The entry that maps `addr`, if the table for it exists. The lock is held.
fn leaf_entry(addr: u64) -> Option<*mut u64> {
    let mut table = kernel_root();
    for level in (1..4).rev() {
        // SAFETY: `entry` points into a live kernel page table.
        let value = unsafe { entry(table, addr, level).read_volatile() };
        if value == 0 {
            return None;
        }
        table = Pfn::of_phys(value & PTE_ADDRESS);
    }
    Some(entry(table, addr, 0))
}

fn entry(table: Pfn, addr: u64, level: u32) -> *mut u64 {
    let index = (addr >> (12 + 9 * level)) & 511;
    table.ptr().cast::<u64>().wrapping_add(index as usize)
}
