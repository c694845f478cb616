//! The run queue of one CPU, and how CPUs without work and waiting tasks find each other.
//!
//! Owns what the scheduler decides about order, and nothing that it does: no clock, no lock, no switch; times come in as
//! numbers. So the same code runs in the kernel, on the host under proptest, and under loom. It must never allocate but
//! in [`RunQueue::reserve`], which may fail: tasks are woken in interrupts.
//!
//! | module | what it decides |
//! |---|---|
//! | [`queue`] | who runs next, and whether the one who runs makes way |
//! | [`share`] | when normal tasks run although real-time ones want to |
//! | [`idle`] | which CPU is told that a task waits |
//!
//! # Locks
//!
//! The crate holds none. [`RunQueue`] is for whoever has it locked; [`idle`]'s words are atomic.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod heap;
pub mod idle;
pub mod queue;
pub mod share;
mod sync;

pub use heap::PIECE;
pub use idle::{IdleCpus, Length};
pub use queue::{NORMAL_RANK, Place, Preempts, RunQueue, Standing};
