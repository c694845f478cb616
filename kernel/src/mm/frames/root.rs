//! The kernel's own top-level page table, of which every other one has the upper half.
//!
//! Owns where it is. Never changes it: its entries for the kernel are made at boot. Locks: none.

use super::pfn::Pfn;
use crate::base::page;
use core::sync::atomic::{AtomicU64, Ordering};

/// The kernel's own top-level table. Relaxed: written once, before a second CPU runs.
static ROOT: AtomicU64 = AtomicU64::new(0);

/// Remembers the kernel's top-level table, which is active now.
pub(in crate::mm) fn init() {
    ROOT.store(page::read_cr3().as_u64(), Ordering::Relaxed);
}

/// The kernel's own top-level table.
pub(in crate::mm) fn kernel_root() -> Pfn {
    Pfn::of_phys(ROOT.load(Ordering::Relaxed))
}
