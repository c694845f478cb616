//! Where everything lies in the 48-bit address space.
//!
//! Constants and conversions only. The direct map covers all RAM at [`DIRECT_MAP_BASE`]; kernel stacks
//! lie in the vmalloc area with an unmapped guard page under each; the kernel image is in the top 2 GiB.

use crate::base::page::USER_END;
use x86_64::{PhysAddr, VirtAddr};

/// Bytes in a page.
pub use crate::base::PAGE_SIZE;
pub use crate::base::areas::{DIRECT_MAP_BASE, vmalloc};
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Lowest address that is chosen for a mapping, and that `vm.mmap_min_addr` begins with.
pub const MMAP_MIN: u64 = 0x1_0000;

/// The kernel's address for a byte of physical memory.
#[inline]
pub fn phys_to_virt(phys: PhysAddr) -> VirtAddr {
    // A physical address has at most 52 bits, so the sum stays inside the canonical upper half for every
    // address the direct map can hold.
    VirtAddr::new_truncate(DIRECT_MAP_BASE.wrapping_add(phys.as_u64()))
}

/// `addr` rounded down to a page boundary.
#[inline]
pub const fn page_down(addr: u64) -> u64 {
    addr & !(PAGE_SIZE as u64 - 1)
}

/// `addr` rounded up to a page boundary; `None` when that does not fit.
#[inline]
pub const fn page_up(addr: u64) -> Option<u64> {
    match addr.checked_add(PAGE_SIZE as u64 - 1) {
        Some(sum) => Some(page_down(sum)),
        None => None,
    }
}

/// Space that must stay free below a mapping that grows down.
pub const STACK_GUARD: u64 = 256 * PAGE_SIZE as u64;

/// Where upward searches start, before randomisation: a third of user space.
pub const BOTTOM_UP_BASE: u64 = (USER_END / 3).next_multiple_of(PAGE_SIZE as u64);

/// Where mappings go whose place the program leaves open.
#[derive(Clone, Copy)]
pub enum MmapBase {
    /// As high as possible below.
    Top(u64),
    /// As low as possible above, and nowhere else.
    Bottom(u64),
}

impl Default for MmapBase {
    fn default() -> Self {
        Self::Top(USER_END)
    }
}
