//! What a caller brings to every look-up: root and directory (`context`), descriptors (`fdtable`).

pub(super) mod context;
pub(super) mod fdtable;
