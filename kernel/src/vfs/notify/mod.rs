//! Watching files: the hooks (`events`), what they report (`happened`), and who watches what (`marks`).
#![forbid(unsafe_code)]

pub mod events;
mod happened;
pub mod listeners;
pub mod marks;
pub mod urgent;

pub use events::{attr_changed, file};
pub(super) use events::{
    closed, linked, moved, name_dropped, named, removed, transferred, unmounted, xattr_changed,
};
pub use happened::{Event, event};
pub use listeners::{Listeners, Reason};
