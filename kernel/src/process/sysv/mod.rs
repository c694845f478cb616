//! System V IPC: objects with numbers and keys (`table`), whose they are (`perm`), how many there may be (`limits`);
//! shared memory (`shm`), semaphores (`sem`) and message queues (`msg`); what a task keeps of it (`part`); what /proc shows (`proc`).
//!
//! Which number an object gets, whom its mode refuses, what operations do to semaphores and which message a receiver
//! gets is the pure crate `alea-sysv`'s to say.
#![forbid(unsafe_code)]

mod limits;
pub mod msg;
mod part;
mod perm;
mod proc;
pub mod sem;
pub mod shm;
mod table;

pub(super) use part::Part;
pub(super) use proc::register;

/// How an object is named to be told of.
#[derive(Clone, Copy)]
pub enum Named {
    /// IPC_STAT: by its identifier.
    Id(i32),
    /// SHM_STAT and its like: by its index.
    Index(i32),
    /// SHM_STAT_ANY and its like: by its index, whoever may read it.
    AnyIndex(i32),
}

/// Seconds since 1970.
fn now() -> i64 {
    crate::time::realtime().secs() as i64
}
