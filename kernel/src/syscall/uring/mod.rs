//! io_uring: rings of requests and completions in memory that a program shares with the kernel.
//!
//! [`mod@memory`] is what is shared, [`mod@ring`] one ring and its file. [`mod@setup`], [`mod@enter`] and [`mod@register`] are the calls;
//! [`mod@submit`] takes entries, [`mod@check`] says what entries can be, [`mod@carry`] keeps links in order, [`mod@perform`] carries
//! one out, by the functions that the system calls use, [`mod@plain`] the most usual ones, [`mod@message`] RECVMSG into buffers, within
//! [`mod@restrict`]ions, with what was [`mod@handed`] over before and the [`mod@files`] of the ring; [`mod@outcome`] is what became of
//! it, and [`mod@parked`] is one that waits, if need be for what is [`mod@awaited`] beside files; [`mod@update`] changes it, and [`mod@later`] goes on with it.
//!
//! Nothing in the shared memory is trusted twice: an index is read once and masked, an entry is copied once, and only the copy
//! is looked at. Lock order: a ring's mutex, then what a system call takes.

mod awaited;
mod carry;
pub mod check;
pub mod enter;
mod files;
mod handed;
mod later;
mod memory;
mod message;
mod outcome;
mod parked;
mod perform;
mod plain;
pub mod register;
mod request;
mod restrict;
mod ring;
pub mod setup;
mod submit;
mod update;
