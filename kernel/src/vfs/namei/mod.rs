//! From a name to an object: the walk (`lookup`), permissions (`perm`).
#![forbid(unsafe_code)]

mod lookup;
pub mod perm;

pub(super) use lookup::{Last, Walker, parent};
pub use lookup::{LookupCtx, LookupFlags, lookup};
