//! Signal queues: what is pending, for whom it counts, and how senders and masks agree.
//!
//! Owns the rules of pending signals that need nothing of a kernel, so that the same code runs in the kernel, on the
//! host under proptest, and under loom. It must never wake anybody, take a lock, or allocate in a way that cannot fail.
//!
//! | module | what it decides |
//! |---|---|
//! | [`queue`] | what happens to a signal that is sent, and which one is taken next |
//! | [`tally`] | how many queued signals each user has, for RLIMIT_SIGPENDING |
//! | [`agree`] | the two words by which a sender and a thread that changes its mask never miss each other |
//!
//! # Locks
//!
//! The crate holds none. [`queue::Queue`] and [`tally::Tally`] are for whoever has them locked; the words of [`agree`]
//! are atomic.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agree;
pub mod queue;
mod sync;
pub mod tally;

pub use agree::{Blocked, PendingSet};
pub use queue::{Pushed, Queue, Taken};
pub use tally::{Refused, Tally};
