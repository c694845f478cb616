//! Mappings in the kernel's own area, shared by all address spaces.
//!
//! The top-level entry for the area was made at boot and is in every address space, so a mapping made here
//! is seen by all. Pages once mapped stay mapped: no TLB ever holds a stale entry. Lock: `Frames` ranks
//! below the one here, because tables are allocated under it.

use super::frames::{self, For, Pfn};
use crate::arch::page::{self, PTE_ADDRESS, PteFlags};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU64, Ordering};

/// The kernel's own top-level table. Relaxed: written once, before a second CPU runs.
static ROOT: AtomicU64 = AtomicU64::new(0);
static TABLES: SpinLock<(), level::Heap> = SpinLock::new(());

/// Remembers the kernel's top-level table, which is active now.
pub(super) fn init() {
    ROOT.store(page::read_cr3().as_u64(), Ordering::Relaxed);
}

/// The kernel's own top-level table.
pub(super) fn kernel_root() -> Pfn {
    Pfn::of_phys(ROOT.load(Ordering::Relaxed))
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
            value = new.phys() | (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
            // SAFETY: as above; the new table is all zeros.
            unsafe { entry.write_volatile(value) };
        }
        debug_assert!(value & PteFlags::LARGE.bits() == 0);
        table = Pfn::of_phys(value & PTE_ADDRESS);
    }
    let flags = PteFlags::PRESENT | PteFlags::WRITABLE | PteFlags::GLOBAL | page::nx();
    // SAFETY: as above; the entry was empty, so no TLB knows another translation.
    unsafe { entry(table, addr, 0).write_volatile(frame.phys() | flags.bits()) };
    Ok(())
}

fn entry(table: Pfn, addr: u64, level: u32) -> *mut u64 {
    let index = (addr >> (12 + 9 * level)) & 511;
    table.ptr().cast::<u64>().wrapping_add(index as usize)
}
