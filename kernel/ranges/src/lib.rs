//! An ordered map of disjoint address ranges, with a search for gaps; and a list of numbered values.
//!
//! [`RangeMap`] keeps its ranges in sorted leaves of at most 64; with one leaf, as most processes have, it is
//! a sorted vector, whose copy is one allocation. Each leaf knows its largest gap, so that a search for free
//! space looks into few of many thousand ranges. [`Numbered`] is for what has no length.
//! Owns only its vectors; takes no locks; never panics for
//! want of memory: what may allocate says so with [`OutOfMemory`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod gaps;
mod map;
mod numbered;

pub use map::{OutOfMemory, Pos, RangeMap, Span};
pub use numbered::Numbered;
