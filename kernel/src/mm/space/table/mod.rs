//! Page tables (`table`, of `entries`), shared between forks (`share`), and what the TLBs have of them (`tlb`, `shootdown`, `barrier`).

pub(super) mod barrier;
mod entries;
pub(super) mod share;
pub mod shootdown;
mod table;
pub mod tlb;

pub(super) use entries::{
    ACCESSED, DIRTY, Group, KNOWN, OWNED, PRESENT, Table, WRITABLE, ZERO, bits, frame_of,
};
pub(super) use table::{LEAF_SPAN, LeafPart, NO_LEAF, PageTable, index_at};
