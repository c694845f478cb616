//! Memory: frames, heap, address spaces, page cache, user copy.
//!
//! Owns every page of RAM. Upper floors hold [`Frame`]s, [`PageCache`]s and [`AddressSpace`]s and reach user
//! memory through [`user`] and [`iov`] only. `unsafe` is allowed here, under the invariants that each file
//! names. Lock order: a file's own locks, then an address space, then a page cache, then the allocators.

pub mod fallible;
pub mod frames;
pub mod iov;
pub mod layout;
pub mod space;
pub mod user;
pub mod virtio;

mod boot_module;
mod frame;
pub mod heap;
mod page_buf;
mod page_cache;
pub mod selftest;
mod source;
mod stack;
mod vmalloc;
mod zero;

pub use boot_module::BootModule;
pub use frame::Frame;
pub use heap::inject;
pub use iov::{Sink, Source};
pub use layout::PAGE_SIZE;
pub use page_buf::PageBuf;
pub use page_cache::{PageCache, PageQuota};
pub use source::MapSource;
pub use space::AddressSpace;
pub use stack::KernelStack;

use crate::arch::boot::BootInfo;

/// Takes over all usable memory: frames, then the heap. Called once, on the boot CPU, before anything
/// allocates.
pub fn init(info: &BootInfo) {
    vmalloc::init();
    frames::init(info);
    heap::init_cpu();
    stack::init_cpu();
    zero::init();
    space::init();
    let stats = frames::stats();
    log::info!(
        "memory: {} MiB, {} KiB of it in use",
        stats.total >> 8,
        (stats.total - stats.free) << 2
    );
}

/// Readies this CPU's caches: called once on each further CPU, before it allocates.
pub fn init_cpu() {
    frames::init_cpu();
    heap::init_cpu();
    stack::init_cpu();
}

/// Whether memory is so short that calls that create long-lived kernel objects should give `ENOMEM`.
pub fn kernel_memory_low() -> bool {
    frames::is_low()
}

/// Memory has run out here: all CPUs give back the free frames that they keep. How many there were.
pub fn gather_free_frames() -> usize {
    let before = frames::shared();
    space::drain_all_cpus();
    frames::shared().saturating_sub(before)
}

/// Zeroes one free frame ahead of its use, if the pool of zeroed frames is not full: an idle CPU calls it,
/// with interrupts on, until it returns `false`.
pub fn zero_one_frame_when_idle() -> bool {
    frames::zero_one()
}

/// Gives back memory that the kernel keeps ahead, if it is too much: as above.
pub fn trim_when_idle() -> bool {
    stack::trim()
}
