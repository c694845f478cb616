//! Shared memory: from shmget to the end (`segment`), in an address space (`attach`), shmctl (`control`).

mod attach;
mod control;
mod segment;

pub use attach::{Attach, attach};
pub use control::{info, limits, lock, remove, set, stat, unlock};
pub use segment::get;
pub(super) use segment::{end_orphans, for_each, forget_maker};
