//! Memory: frames, heap, address spaces, page cache, user copy.
//!
//! Owns every page of RAM. Upper floors hold [`Frame`]s, [`PageCache`]s and [`AddressSpace`]s and reach user
//! memory through [`user`] and [`user::iov`] only. `unsafe` is allowed here, under the invariants that each file
//! names. Lock order: a file's own locks, then an address space, then a page cache, then the allocators.

pub mod commit;
pub mod fallible;
pub mod faults;
pub mod frames;
pub mod heap;
mod kernel;
pub mod layout;
mod page_cache;
pub mod selftest;
pub mod space;
mod start;
pub mod user;

pub use frames::boot_module::BootModule;
pub use frames::frame::Frame;
pub use frames::page_buf::PageBuf;
pub use frames::{is_reserve_in_use, is_short, kernel_memory_low, split_pages};
pub use kernel::stack::{KernelStack, lost_frames};
pub use kernel::vmalloc::table_pages;
pub use layout::{BOTTOM_UP_BASE, MmapBase, STACK_GUARD};
pub use page_cache::page_cache::{PageCache, PageQuota};
pub use page_cache::source::{MapObserver, MapSource};
pub use space::space::AddressSpace;
pub use space::{MAX_MAP_COUNT, MMAP_MIN_ADDR, is_low};
pub use space::{collapse, huge, kept_pages};
pub use start::{
    fail_allocations, gather_free_frames, has_user_frames, init, init_cpu, trim_when_idle,
    wipe_memory, zero_one_frame_when_idle,
};
pub use user::iov::{Sink, Source};
