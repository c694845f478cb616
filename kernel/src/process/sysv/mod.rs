//! System V IPC: objects with numbers and keys (`table`), whose they are (`perm`), how many there may be (`limits`);
//! shared memory (`segment`, attached through `attach`, told of by `control`); what a task keeps of it (`part`); what /proc
//! shows (`proc`).
//!
//! Which number an object gets and whom its mode refuses is the pure crate `alea-sysv`'s to say.
#![forbid(unsafe_code)]

mod attach;
mod control;
mod limits;
mod part;
mod perm;
mod proc;
mod segment;
mod table;

pub use attach::{Attach, attach};
pub use control::{Named, info, limits as shm_limits, lock, remove, set, stat as shm_stat, unlock};
pub(super) use part::Part;
pub(super) use proc::register;
pub use segment::get as shm_get;
