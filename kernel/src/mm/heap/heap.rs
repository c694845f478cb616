//! The kernel heap: size classes in page-sized slabs with a magazine per CPU; big sizes from the buddy.
//!
//! Owns the global allocator. It may use a part of the reserve, all of it for some; calls that make long-lived objects
//! for users ask [`kernel_memory_low`](crate::mm::frames::kernel_memory_low) first. An ordinary allocation that finds
//! no memory ends the machine, so once users run all goes through [`fallible`](crate::mm::fallible).
//!
//! Never: an interrupt handler does not allocate (the checking kernel panics if one does); it may free.
//!
//! Invariants: an object in a magazine or in a slab's free list belongs to nobody else; a slab's metadata
//! says which class it has. A magazine is used only by its CPU, behind a busy mark as in
//! `frames::cpu_cache`. Locks: one `Heap` lock for each class's slabs; no lock for the magazines.

use super::{classes, magazine, slab};

use super::classes::class_of;
use crate::base::PAGE_SIZE;
use crate::mm::frames::inject::{self, Kind};
use crate::mm::frames::{self, Pfn};
use crate::mm::layout::DIRECT_MAP_BASE;
use alea_frames::Owner;
use core::alloc::{GlobalAlloc, Layout};

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: small objects come from slabs, where each is handed out once until it is freed (see `slab` and
// `magazine`), with the size and alignment of its class; big ones are blocks of whole frames. `dealloc` and
// `realloc` derive class or block size from the same layout as `alloc` did.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            Some(class) => magazine::alloc(class),
            None => alloc_big(layout),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        match class_of(layout) {
            Some(class) => magazine::free(class, ptr),
            None => free_big(ptr, layout),
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(new_layout) = Layout::from_size_align(new_size, layout.align()) else {
            return core::ptr::null_mut();
        };
        let (old, new) = (class_of(layout), class_of(new_layout));
        if old == new && (old.is_some() || pages(layout) == pages(new_layout)) {
            return ptr;
        }
        // SAFETY: both layouts are valid; the old block holds `layout.size()` bytes.
        unsafe {
            let to = self.alloc(new_layout);
            if !to.is_null() {
                core::ptr::copy_nonoverlapping(ptr, to, layout.size().min(new_size));
                self.dealloc(ptr, layout);
            }
            to
        }
    }
}

fn pages(layout: Layout) -> usize {
    // An alignment above a page is met by a block of at least that size.
    layout
        .size()
        .max(if layout.align() > PAGE_SIZE { layout.align() } else { 1 })
        .div_ceil(PAGE_SIZE)
}

/// Makes sure that the next `count` objects of `layout`, which is of a size class, are there for who allocates them at
/// once on this CPU.
#[inline]
pub(in crate::mm) fn reserve(layout: Layout, count: usize) -> bool {
    match class_of(layout) {
        Some(class) => magazine::reserve(class, count),
        None => false,
    }
}

#[cold]
fn alloc_big(layout: Layout) -> *mut u8 {
    if inject::fails(Kind::Heap) {
        return core::ptr::null_mut();
    }
    let pages = pages(layout);
    let order = pages.next_power_of_two().ilog2() as usize;
    let Some(first) = frames::alloc_block(order, Owner::Slab) else { return core::ptr::null_mut() };
    let spare = (1usize << order) - pages;
    if spare > 0 {
        frames::free_block_part(Pfn(first.0 + pages as u32), spare as u32, Owner::Slab);
    }
    frames::charge_block(first, pages as u32);
    first.ptr()
}

#[cold]
fn free_big(ptr: *mut u8, layout: Layout) {
    let first = Pfn::of_phys((ptr as u64).wrapping_sub(DIRECT_MAP_BASE));
    debug_assert!(first.meta().owner() == Owner::Slab, "a big object freed twice");
    frames::uncharge_block(first, pages(layout) as u32);
    frames::free_block_part(first, pages(layout) as u32, Owner::Slab);
}

/// The pages that a room for `places` values has; none if it is an object of a slab.
pub fn pages_of_room<T>(places: usize) -> u64 {
    let bytes = places.saturating_mul(size_of::<T>());
    if bytes > classes::MAX { bytes.div_ceil(PAGE_SIZE) as u64 } else { 0 }
}

/// How many size classes there are.
pub const CLASSES: usize = classes::SIZES.len();

/// What is allocated; exact if nothing is allocated or freed meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Size in bytes and number of objects, by class.
    pub classes: [(u16, u32); CLASSES],
    /// How many slabs each has, of a page each.
    pub slabs: [u32; CLASSES],
    /// Pages of slabs.
    pub slab_pages: u64,
}

/// Counts what is allocated.
pub fn live() -> Live {
    let mut slabs = [0; CLASSES];
    let classes = core::array::from_fn(|class| {
        let (count, out) = slab::figures(class);
        slabs[class] = count;
        (classes::SIZES[class], out.saturating_sub(magazine::waiting(class)))
    });
    Live { classes, slabs, slab_pages: slabs.iter().copied().map(u64::from).sum() }
}

/// From now on this CPU keeps no free objects.
pub(in crate::mm) fn keep_none() {
    magazine::keep_none();
}

/// Readies this CPU's magazines: once on each CPU, before it allocates.
pub(in crate::mm) fn init_cpu() {
    magazine::init_cpu();
}
