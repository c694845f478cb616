//! The list of mappings: one call a file (`map`, `unmap`, `remap`, `protect`, `advise`, `brk`), where a new one goes (`choose`),
//! pages that may be dropped (`droppable`), shmdt (`detach`). All are methods of `space::Inner`, whose lock the caller holds, and of
//! `AddressSpace`, which take it.

mod advise;
mod brk;
pub(super) mod choose;
mod detach;
pub(super) mod droppable;
mod map;
mod protect;
mod remap;
pub(super) mod unmap;
