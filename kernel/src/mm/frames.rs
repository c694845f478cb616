//! The frame allocator: buddy, per-CPU caches, accounting.

/// Frames by use, in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameStats {
    /// All frames that the allocator was given.
    pub total: u64,
    /// Frames in nobody's hands, per-CPU caches included.
    pub free: u64,
    /// Free frames that are known to be zero.
    pub zeroed: u64,
    /// User page tables.
    pub page_tables: u64,
    /// Pages of files and shared memory.
    pub page_cache: u64,
    /// Private anonymous memory.
    pub anon: u64,
    /// The kernel heap, slabs and large objects together.
    pub slab: u64,
    /// Kernel stacks, cached ones included.
    pub kernel_stacks: u64,
}

/// How the frames are used now.
pub fn stats() -> FrameStats {
    todo!()
}
