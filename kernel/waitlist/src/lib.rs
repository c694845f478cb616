//! Wait queues as a pure crate: who waits for a change, how he enters and leaves, who is woken.
//!
//! Owns [`Queue`], with two kinds of waiters: a [`Sleeper`] stands on the stack of the thread that sleeps, so that
//! waiting cannot fail for want of memory; [`Registrations`] are what poll and epoll leave in the queues of the files that
//! they watch. A registration leaves *its own* queue when it is dropped, in constant time, without allocating, and
//! whether or not the queue still exists: nobody looks for it a second time. [`Ready`] is epoll's list of what may be
//! ready: numbered places, whose memory is found before the list's lock is taken.
//!
//! Never: sleeps, allocates while it holds a lock, or panics for want of memory. The crate has no lock of its own: the
//! kernel hands in its spinlock ([`Exclusion`]), the tests a mutex, loom its own. How a thread sleeps is not known here.
//!
//! Locks: a queue's lock is held while waiters are woken, so [`Wake::wake`] must not touch the queue that calls it.
//!
//! The nodes of the lists are linked by pointers, which is why this crate has `unsafe` code. `tests/loom.rs` explores
//! the interleavings, `tests/model.rs` compares with models and runs under Miri.
#![no_std]

extern crate alloc;

mod list;
mod queue;
mod ready;
mod registrations;
mod sync;

pub use list::{Exclusion, List};
pub use queue::{Queue, Sleeper};
pub use ready::{Ready, Room};
pub use registrations::{Registering, Registrations};

/// Something that can be woken: a thread, a watched file of an epoll.
///
/// Called with a queue's lock held, perhaps in an interrupt handler: must not block, and must not touch the queue that
/// calls it.
pub trait Wake: Send + Sync {
    /// `events`: the poll bits that became true, or 0 if the waker did not say. Whether this wake-up will be used: one
    /// that is meant for a single waiter goes to the next if it is not.
    fn wake(&self, events: u32) -> bool;
}
