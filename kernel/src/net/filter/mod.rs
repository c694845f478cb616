//! Filters of sockets: a program of classic BPF says how much of each message that comes a socket takes.
//!
//! [`Slot`] is a socket's filter, [`Shape`] the headers that a filter sees before a message,
//! of which there are none here until somebody looks. A filter runs in its sender's context. Locks: a slot's is a `Leaf`.

mod shape;
mod slot;

pub use shape::{Shape, Way};
pub use slot::Slot;
