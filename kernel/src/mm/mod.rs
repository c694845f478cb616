//! Memory: frames, heap, address spaces, page cache, user copy.
//!
//! Owns every page of RAM. Upper floors hold [`Frame`]s, [`PageCache`]s and [`AddressSpace`]s and reach user
//! memory through [`user`] and [`iov`] only. `unsafe` is allowed here, under the invariants that each file
//! names. Lock order: a file's own locks, then an address space, then a page cache, then the allocators.

pub mod frames;
pub mod iov;
pub mod layout;
pub mod space;
pub mod user;

mod frame;
mod page_cache;
mod source;
mod stack;

pub use frame::Frame;
pub use iov::{Sink, Source};
pub use page_cache::{PageCache, PageQuota};
pub use source::MapSource;
pub use space::AddressSpace;
pub use stack::{KERNEL_STACK_SIZE, KernelStack};

/// Whether memory is so short that calls that create long-lived kernel objects should give `ENOMEM`.
pub fn kernel_memory_low() -> bool {
    false
}

/// Zeroes one free frame ahead of its use, if the pool of zeroed frames is not full: an idle CPU calls it,
/// with interrupts on, until it returns `false`.
pub fn zero_one_frame_when_idle() -> bool {
    false
}

use core::alloc::{GlobalAlloc, Layout};

/// Placeholder until the heap stands: every allocation fails.
struct NoHeap;

// SAFETY: returning null is always allowed, and nothing is ever handed out to be freed.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;
