//! Files below /proc/sys.
//!
//! Each is one of four things, as its registration says: a setting that some code obeys ([`register_setting`],
//! [`register_settings`], [`register_wide`]); a file with code of its own (`register_numbers`, `register_line`); a number that has
//! nothing to act on here ([`Kept`]), with the reason; or a file that nobody can write on Linux either (mode 0444).
#![forbid(unsafe_code)]

mod kept;
mod number;
mod numbers;
mod own;
mod table;

pub use kept::{Kept, register_kept};
pub use number::{by_prefix, next_word, number};
pub use numbers::{Several, register_setting, register_settings, register_wide};
pub(super) use table::register;
