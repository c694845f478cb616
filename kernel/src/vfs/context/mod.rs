//! What a process brings to every lookup: root and working directory (`context`), descriptors (`fdtable`; `files` changes them).

pub(super) mod context;
pub(super) mod fdtable;
pub(super) mod files;
