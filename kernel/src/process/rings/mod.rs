//! /proc/alea/trace: what traced tasks do, as records in rings that user space reads.
//!
//! Who opens the file and writes to it what he wants to see has a session ([`mod@session`]): a ring for each CPU
//! ([`mod@ring`]), into which the CPU itself writes, and which the session's readers empty. Nobody waits for a reader: what
//! finds no room is counted, and told as lost. A task is traced by one session at most; besides there are sessions of root's
//! that see all tasks.
//!
//! [`mod@tell`] is what the tracepoints call, [`mod@calls`] its part for system calls, of which the short ones are told directly, [`capture`] copies what their arguments
//! point to, [`record`] has the form of what is written, [`mod@file`] the file and its commands ([`mod@command`]).
//!
//! Lock order: who changes sessions holds the mutex of the file, then that of all sessions.

mod calls;
mod capture;
mod command;
mod emit;
mod file;
mod record;
mod ring;
mod session;
mod tell;

pub(in crate::process) use calls::{BARE_CALL, CALL, Ended, is_bare, is_short};
pub(in crate::process) use file::register;
pub(in crate::process) use session::{exec_done, inherit, task_ends};
