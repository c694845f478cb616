//! What a process brings to every lookup: root and working directory (`context`), descriptors (`fdtable`), and a task's part
//! in them (`files`).

pub(super) mod context;
pub(super) mod fdtable;
pub(super) mod files;
