//! Page tables (`table`, of `entries`), shared between forks (`share`) or behind large pages (`large`, `behind`), and what the TLBs have of them (`tlb`, `shootdown`, `barrier`).

pub(super) mod barrier;
pub(super) mod behind;
mod entries;
mod large;
pub(super) mod share;
pub mod shootdown;
mod table;
pub mod tlb;

pub(in crate::mm) use entries::{ACCESSED, PRESENT, WRITABLE};
pub(super) use entries::{
    DIRTY, GROUP_SPAN, Group, KNOWN, OWNED, Table, ZERO, bits, closed, frame_of, opened,
};
pub(super) use large::LargeFlags;
pub(in crate::mm) use table::assert_agree;
pub(super) use table::{LEAF_SPAN, LeafPart, LeafState, NO_LEAF, PageTable, index_at};
