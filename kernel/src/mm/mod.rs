//! Memory: frames, heap, address spaces, page cache, user copy.

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
