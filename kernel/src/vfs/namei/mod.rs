//! From a name to an object: the path walk (`lookup`), permissions (`perm`), and the restrictions in sticky directories
//! such as /tmp (`protect`).
#![forbid(unsafe_code)]

mod lookup;
pub mod perm;
pub mod protect;

pub(super) use lookup::{Last, Walker, parent};
pub use lookup::{LookupCtx, LookupFlags, lookup};
