//! [`BootModule`]: what the loader left in memory for the kernel (the initramfs).
//!
//! Owns that memory: taken once, since `take` empties the boot information. Never used after the drop, which gives it
//! back. Locks: the buddy's, then.

use super::boot;
use crate::base::boot_info::BootInfo;
use crate::mm::layout::phys_to_virt;
use x86_64::PhysAddr;

/// A range of memory that the loader filled; dropping it gives the memory to the allocator.
pub struct BootModule {
    start: PhysAddr,
    len: u64,
}

impl BootModule {
    /// Takes the initramfs out of the boot information: there is only one owner.
    pub fn take(info: &mut BootInfo) -> Option<Self> {
        let (start, len) = info.initramfs.take()?;
        Some(Self { start, len })
    }

    /// What is in it.
    pub fn bytes(&self) -> &[u8] {
        let start = phys_to_virt(self.start).as_ptr::<u8>();
        // SAFETY:
        // 1. The loader's range is RAM in the direct map, kept out of the allocator until `drop` (the
        //    memory map marks it as the initramfs).
        // 2. Nothing writes to it: `take` made this its only owner.
        // 3. The slice does not outlive `self`.
        unsafe { core::slice::from_raw_parts(start, self.len as usize) }
    }
}

impl Drop for BootModule {
    fn drop(&mut self) {
        boot::release(self.start.as_u64(), self.len);
    }
}
