//! What a caller brings to every look-up: root and directory (`context`), descriptors (`fdtable`), credentials (`cred`).

pub(super) mod context;
pub mod cred;
pub(super) mod fdtable;
