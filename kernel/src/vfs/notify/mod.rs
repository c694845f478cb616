//! Watching files: the hooks (`events`) and who listens (`marks`).
#![forbid(unsafe_code)]

pub mod events;
pub mod marks;

pub use events::{Event, attr_changed, file};
pub(super) use events::{
    closed, linked, moved, name_dropped, named, removed, transferred, unmounted, xattr_changed,
};
