//! Frames: the allocator, its caches, and the owners' handles on them.

pub(super) mod boot;
pub(super) mod boot_module;
mod buddy;
pub(super) mod cpu_cache;
pub(super) mod frame;
pub(super) mod frames;
pub mod inject;
pub(super) mod page_buf;
mod pfn;
pub(super) mod root;
pub(super) mod zero;

pub(super) use buddy::has_spare;
pub use buddy::kernel_memory_low;
pub(super) use frames::{
    FrameStats, alloc, alloc_root, alloc_table, alloc_zeroed, change_owner, drain, free,
    free_block_part, free_root, free_table, keep_none, put, shared, zero_one,
};
pub use frames::{OVERCOMMIT_MEMORY, alloc_block, is_hopeless, stats};
pub(super) use pfn::For;
pub use pfn::Pfn;
