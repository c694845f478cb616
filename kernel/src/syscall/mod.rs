//! System calls: one table, and handlers by subsystem.
//!
//! [`table`] is the only list of calls; dispatch, names for traces and docs/abi.md all come from it. A
//! handler never sees a negative errno: it returns `Result<_, Errno>`, and the edge is here.
#![deny(unsafe_code)]

mod args;
mod caller;
mod counters;
mod event;
mod file;
mod ipc;
mod mm;
mod net;
mod proc;
mod signal;
pub mod system;
mod table;
mod task;
mod time;
mod uring;

pub use proc::init;
pub use table::HANDLERS;
