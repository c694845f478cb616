//! Where the large areas of the kernel's half of the address space begin; KASLR draws that of the second at boot.
//!
//! Owns that address. Never changed once the kernel's own page tables are in use. No locks.

use core::sync::atomic::{AtomicU64, Ordering};

/// Start of the map of all physical memory.
pub const DIRECT_MAP_BASE: u64 = 0xffff_8880_0000_0000;

/// Where the vmalloc area may begin, and does with `nokaslr`; the direct map ends below.
pub const FIRST_VMALLOC: u64 = 0xffff_c900_0000_0000;

static VMALLOC: AtomicU64 = AtomicU64::new(FIRST_VMALLOC);

/// Start of the area of mappings that are made at run time (guarded stacks and the like): within one entry of the top-level table.
#[inline]
pub fn vmalloc() -> u64 {
    // Relaxed: written before there is a second CPU, and before anything was read by it.
    VMALLOC.load(Ordering::Relaxed)
}

/// Says where it is; called once, by boot, before it makes the tables that have it there.
pub fn place_vmalloc(start: u64) {
    VMALLOC.store(start, Ordering::Relaxed);
}
