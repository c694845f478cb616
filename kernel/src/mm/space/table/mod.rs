//! Page tables (`table`), shared between forks (`share`), and what the TLBs have of them (`tlb`, `shootdown`, `barrier`).

pub(super) mod barrier;
pub(super) mod share;
pub mod shootdown;
mod table;
pub mod tlb;

pub(super) use table::{
    ACCESSED, DIRTY, Group, KNOWN, LEAF_SPAN, LeafPart, NO_LEAF, OWNED, PRESENT, PageTable, Table,
    WRITABLE, ZERO, frame_of, index_at,
};
