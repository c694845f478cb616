//! Kernel stacks: 16 KiB each, with an unmapped guard page below, cached.

use abi::Result;
use x86_64::VirtAddr;

/// Usable bytes of a kernel stack.
pub const KERNEL_STACK_SIZE: usize = 16 * 1024;

/// One kernel stack; dropping it gives it back to the cache.
pub struct KernelStack {
    top: VirtAddr,
}

impl KernelStack {
    /// A stack with undefined contents.
    pub fn alloc() -> Result<Self> {
        todo!()
    }

    /// The address just above its last byte, 16-byte aligned.
    pub fn top(&self) -> VirtAddr {
        self.top
    }
}
