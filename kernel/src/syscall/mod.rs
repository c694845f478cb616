//! System calls: one table, and handlers by subsystem.
//!
//! [`table`] is the only list of calls; dispatch, names for traces and docs/abi.md all come from it. A
//! handler never sees a negative errno: it returns `Result<_, Errno>`, and the edge is here.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]
#![deny(unsafe_code)]

mod args;
mod caller;
mod counters;
mod cred;
mod dir;
mod epoll;
mod exec;
mod fd;
mod file;
mod futex;
mod inotify;
mod log;
mod message;
pub mod misc;
mod mm;
mod mount;
mod path;
mod pidfd;
mod pipe;
mod poll;
mod prctl_caps;
mod process;
mod random;
mod rseq;
mod sched;
mod sendrecv;
mod signal;
mod socket;
mod sockopt;
mod splice;
mod table;
mod time;
mod xattr;

pub use table::HANDLERS;

use crate::arch::trap::TrapFrame;
use abi::Errno;

/// How much of Linux's call stands.
#[derive(Clone, Copy, Debug)]
pub enum Status {
    /// Everything that Linux does and programs use.
    Full,
    /// The text says what is missing.
    Partial(&'static str),
}

/// Adds the files of this floor to /proc.
pub fn init() -> abi::Result<()> {
    counters::register()
}

/// Unknown calls fail; /proc/alea/syscalls shows that they were made.
extern "C" fn no_such_call(frame: &mut TrapFrame) -> i64 {
    // Linux looks at the low 32 bits only.
    counters::count((frame.orig_rax as u32 as usize).min(table::LEN));
    Errno::ENOSYS.to_return()
}
