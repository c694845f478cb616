//! The list of mappings: one call a file (`map`, `unmap`, `remap`, `protect`, `advise`, `brk`), one mapping (`vma`),
//! where a new one goes (`choose`), pages that may be dropped (`droppable`).

mod advise;
mod brk;
mod choose;
pub(super) mod droppable;
mod map;
mod protect;
mod remap;
pub(super) mod unmap;
pub(super) mod vma;
