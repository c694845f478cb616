//! io_uring: rings of requests and completions in memory that a program shares with the kernel.
//!
//! [`mod@memory`] is what is shared, [`mod@ring`] one ring. [`mod@setup`], [`mod@enter`] and [`mod@register`] are the calls;
//! [`mod@submit`] takes entries ([`mod@enter`] the plain ones of a ring where nothing else goes on), [`mod@check`] says what entries can be, [`mod@carry`] keeps links in order, [`mod@again`] goes on with what waited, [`mod@act`] carries one out
//! within [`mod@restrict`]ions, with what was [`mod@handed`] over before and the [`mod@files`] of the ring; [`mod@outcome`] is what became
//! of it, and [`mod@parked`] is one that waits, if need be for what is [`mod@awaited`] beside files; [`mod@update`] changes it, and
//! [`mod@later`] goes on with it.
//!
//! Nothing in the shared memory is trusted twice: an index is read once and masked, an entry is copied once, and only the copy
//! is looked at; what it points at is [`mod@kept`] if it cannot be carried out at once. Lock order: a ring's mutex, then what a system call takes.

mod act;
mod again;
mod awaited;
mod carry;
pub mod check;
pub mod enter;
mod files;
mod handed;
mod kept;
mod later;
mod memory;
mod outcome;
mod parked;
pub mod register;
mod request;
mod restrict;
mod ring;
pub mod setup;
mod submit;
mod update;
