//! The copy of an address space, and what is remembered of a program so that the copy is cheap.
//!
//! What is remembered, of whom, and for how long:
//! - `hot`: the pages that the children of one space wrote to first. The parent's space keeps the list from one fork to
//!   the next; fork copies these pages at once instead of write-protecting them. It ends with the space or with exec.
//! - `known`: the pages of a program that nearly every run of it writes to. They are laid in place, as private copies,
//!   while exec builds the new space.
//! - `page_cache::footprint`: where `known` keeps its knowledge, beside the page cache of the program's file: it lives as
//!   long as the file has pages in memory, and serves every process that runs the program.
//!
//! All three are guesses: a wrong one costs a page that nobody needed, never a wrong byte.

mod fork;
pub(super) mod hot;
mod known;
