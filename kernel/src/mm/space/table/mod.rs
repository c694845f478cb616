//! Page tables (`table`, of `entries`), shared between forks (`share`), and what the TLBs have of them (`tlb`, `shootdown`, `barrier`).

pub(super) mod barrier;
mod entries;
pub(super) mod share;
pub mod shootdown;
mod table;
pub mod tlb;

pub(in crate::mm) use entries::{ACCESSED, PRESENT, WRITABLE};
pub(super) use entries::{DIRTY, GROUP_SPAN, Group, KNOWN, OWNED, Table, ZERO, bits, frame_of};
pub(super) use table::{LEAF_SPAN, LeafPart, NO_LEAF, PageTable, index_at};
