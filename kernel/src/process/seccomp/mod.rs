//! seccomp(2): what system calls a task may make.
//!
//! Each task has a [`Part`]: nothing, strict mode, or the newest of a chain of filters ([`mod@filter`]), which its children
//! inherit and which only grows. The calls of a task that has one go through [`call::asked`] or, if a tracer or the counters see them too,
//! through [`call::may_be_made`]; tasks that have none pay nothing. [`mod@install`] changes the part, of all threads if that is wanted; [`mod@notify`] asks a listener,
//! whose descriptor is [`mod@listener`]; [`mod@log`] tells the kernel log.
//!
//! Lock order: a process's tree (`ProcessTree`), under which its threads come and go, then a task's part (`Owned`). What
//! listeners share with those who ask is under `Stream`, and nothing is taken inside it.

mod call;
mod filter;
mod install;
mod listener;
mod log;
mod notify;
mod part;

pub(super) use call::may_be_made;
pub(super) use filter::{Filter, nth};
pub use install::{has_action, install_filter, install_strict, read_instructions};
pub use log::register;
pub(super) use part::{Mode, Part, be_watched, calls, has_own_calls};
