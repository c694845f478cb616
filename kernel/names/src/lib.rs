//! A directory's names: found by hash, and listed in the order in which they came.
//!
//! [`Names`] keeps up to a dozen in a list that is searched in place, and more in a hash index over a sparse array. Both grow
//! and shrink by one bucket and one small node with each name, never all at once: what adds or removes one name among millions
//! does as much as among hundreds, so a lock around it is held as long. Owns only its memory; takes no locks; never panics for
//! want of memory: what may allocate says so with [`OutOfMemory`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod index;
mod names;
mod radix;

pub use names::{Names, Reserved};

/// An allocation failed; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;
