//! What a program hands to a ring before it knows what for: [`mod@buffers`], and files in a [`mod@table`], which operations fill, too.
//!
//! Owns nothing itself. Locks: none.

pub mod buffers;
pub mod table;
