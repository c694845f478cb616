//! From a name to an object: the walk (`lookup`), permissions (`perm`), and what
//! is forbidden in folders of everybody's (`protect`).
#![forbid(unsafe_code)]

mod lookup;
pub mod perm;
pub mod protect;

pub(super) use lookup::{Last, Walker, parent};
pub use lookup::{LookupCtx, LookupFlags, lookup};
