//! Address spaces: what a process has mapped, and the tables that say so.
//!
//! `space` is the object that all share, `request` the words in which it is asked, `vma` one mapping. `area` changes the
//! list of mappings, `table` holds the page tables and flushes TLBs, `fault` fills pages in, `fork` copies, `registry`
//! lists all spaces, `run` counts faults that follow each other, `limits` asks what the running program may map, `dump` is what a
//! core file asks, `huge` says when large pages are wanted. What is remembered of a program so that exec and fork take fewer faults
//! (`hot`, `fork/known.rs`, and `Footprint` of the page cache): docs/memory.md.
//!
//! One sleeping lock of `space` guards mappings, tables and counts. It is never held across a user access, whose fault
//! would take it again: what is read from or written to user memory goes through buffers of the kernel's, or through the
//! direct map (`fault/direct.rs`).

mod area;
pub mod dump;
mod fault;
mod fork;
mod hot;
pub mod huge;
mod info;
mod limits;
mod registry;
pub mod request;
mod run;
pub(super) mod space;
pub(super) mod table;
pub mod vdso;
mod vma;

pub use area::choose::{MMAP_MIN_ADDR, is_low};
pub use area::droppable::drop_pages;
pub use area::unmap::MAX_MAP_COUNT;
pub(super) use area::unmap::{is_mapped_writable, unmap_everywhere};
pub use fault::collapse;
pub use limits::register_limits;
pub use registry::{find, kept_pages};
pub(super) use space::AddressSpace;
pub use table::barrier::{Membarrier, barrier_everywhere};
pub(super) use table::shootdown::init;
pub(super) use table::tlb::flush_kernel;
