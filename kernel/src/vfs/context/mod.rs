//! What a process brings to every lookup: root and working directory (`context`), descriptors (`fdtable`).

pub(super) mod context;
pub(super) mod fdtable;
