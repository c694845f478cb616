//! [`Handover`]: what an entry found out, before the kernel's own page tables exist. No locks, no statics.

use crate::base::boot_info::BootInfo;

/// What an entry found out, before the kernel's own page tables exist.
pub(super) struct Handover {
    pub(super) info: BootInfo,
    /// Physical address `p` is readable and writable at `p + phys_offset` (for all usable memory).
    pub(super) phys_offset: u64,
    /// Where the first byte of the kernel's image lies.
    pub(super) kernel_phys: u64,
}
