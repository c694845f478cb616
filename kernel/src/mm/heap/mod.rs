//! The kernel heap: the global allocator (`heap`), its size classes, slabs and magazines.

pub(super) mod classes;
mod heap;
pub(super) mod magazine;
#[cfg(debug_assertions)]
mod poison;
mod slab;

pub(super) use heap::{init_cpu, keep_none, reserve};
pub use heap::{live, pages_of_room};
