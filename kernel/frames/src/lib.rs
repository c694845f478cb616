//! Page-frame metadata and a buddy allocator over it.
//!
//! Owns no memory: the caller lends a slice with one [`FrameMeta`] for each frame number, and this crate
//! keeps the free lists in it. Knows no addresses, no locks and no CPUs. Must never touch the metadata of a
//! frame that it has handed out, nor trust that of one it has not.
#![no_std]
#![forbid(unsafe_code)]

mod buddy;
mod meta;

pub use buddy::{Buddy, MAX_ORDER};
pub use meta::{FrameMeta, Owner};
