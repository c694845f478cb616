//! Frames: the allocator, its caches, and the owners' handles on them.

pub(super) mod boot;
pub(super) mod boot_module;
mod buddy;
mod charge;
pub(super) mod cpu_cache;
pub(super) mod direct;
pub(super) mod frame;
pub(super) mod frames;
pub mod inject;
mod large;
pub(super) mod page_buf;
mod pfn;
pub(super) mod root;
pub(super) mod wipe;
pub(super) mod zero;

pub(super) use buddy::{has_spare, is_trusted};
pub use buddy::{is_reserve_in_use, is_short, kernel_memory_low, register_trusted};
pub use charge::{Account, left_by, register_payer};
pub(super) use cpu_cache::Root;
pub use direct::split_pages;
pub(super) use frames::{
    FrameStats, alloc, alloc_root, alloc_table, alloc_zeroed, change_owner, charge_block, drain,
    free, free_block_part, free_root, free_table, keep_none, put, shared, uncharge_block, zero_one,
};
pub use frames::{alloc_block, stats};
pub(super) use large::{LARGE_PAGES, alloc_large, clear_large, put_large};
pub(super) use pfn::For;
pub use pfn::Pfn;
