//! The page cache: a file's pages (`page_cache`, `tree`), copies to and from them (`io`), what programs touch of them
//! (`footprint`), and what may be mapped (`source`).

mod allocate;
pub(super) mod footprint;
mod io;
pub(super) mod page_cache;
pub(super) mod source;
mod tree;

pub(super) use page_cache::{Lookup, PageCache};
