//! Files below /proc/sys.
//!
//! Each is one of four things, and says which by how it is registered: a setting that some code obeys
//! ([`register_setting`], [`register_settings`]); a file with an act of its own (`register_file`); a value that cannot be another
//! here, with the reason ([`Pinned`]); or what Linux too lets nobody write (`register_file` with mode 0444).
#![forbid(unsafe_code)]

mod number;
mod numbers;
mod pinned;
mod table;

pub use number::{by_prefix, number, register_setting};
pub use numbers::{Several, register_settings};
pub use pinned::{Pinned, register_pinned};
pub(super) use table::register;
