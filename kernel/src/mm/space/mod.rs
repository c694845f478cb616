//! Address spaces: what a process has mapped, and the tables that say so.
//!
//! `space` is the object that all share, `request` the words in which it is asked. `area` changes the list of mappings,
//! `table` holds the page tables and flushes TLBs, `fault` fills pages in, `fork` copies, and remembers what a program
//! will need. One sleeping lock of `space` guards mappings, tables and counts; it is never held across a user access.

mod area;
mod fault;
mod fork;
mod info;
mod registry;
pub mod request;
pub(super) mod space;
pub(super) mod table;
pub mod vdso;

pub use area::droppable::drop_pages;
pub(super) use area::unmap::{is_mapped_writable, unmap_everywhere};
pub(super) use space::AddressSpace;
pub use table::barrier::{Membarrier, barrier_everywhere};
pub(super) use table::shootdown::init;
pub(super) use table::tlb::flush_kernel;
