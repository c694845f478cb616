//! Frames: the allocator, its caches, and the owners' handles on them.

pub(super) mod boot;
pub(super) mod boot_module;
pub(super) mod cpu_cache;
pub(super) mod frame;
pub(super) mod frames;
pub(super) mod page_buf;
pub(super) mod zero;

pub(super) use frames::{
    For, FrameStats, alloc, alloc_root, alloc_table, alloc_zeroed, change_owner, drain, free,
    free_block_part, free_root, free_table, kernel_memory_low, put, shared, total, zero_one,
};
pub use frames::{Pfn, alloc_block, stats};
