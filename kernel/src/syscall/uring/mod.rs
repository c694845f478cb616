//! io_uring: rings of requests and completions in memory that a program shares with the kernel.
//!
//! [`mod@memory`] is what is shared, [`mod@ring`] one ring and its file. [`mod@setup`], [`mod@enter`] and [`mod@register`] are the calls;
//! [`mod@submit`] takes entries, [`mod@check`] says what entries can be, [`mod@carry`] keeps links in order, [`mod@perform`] carries
//! one out, by the functions that the system calls use, with [`mod@buffers`] that were handed over before, and [`mod@parked`] is one
//! that waits, and [`mod@later`] goes on with it.
//!
//! Nothing in the shared memory is trusted twice: an index is read once and masked, an entry is copied once, and only the copy
//! is looked at. Lock order: a ring's mutex, then what a system call takes.

mod buffers;
mod carry;
mod check;
pub mod enter;
mod later;
mod memory;
mod parked;
mod perform;
pub mod register;
mod request;
mod ring;
pub mod setup;
mod submit;
