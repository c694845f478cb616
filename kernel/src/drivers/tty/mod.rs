//! Terminals: the line discipline of the tty crate with processes on one side and a device on the other.
//!
//! `tty` is one terminal, serial or pseudo; `read` and `write` are what programs do with it, `job` who may, `ioctl` and
//! `settings` how they control it, `file` what an open of it is, `end` what is behind the discipline, `pty`, `master` and `devpts` the pseudo-terminals, `console` the
//! devices in /dev, `attention` the key for the kernel. Locks: `tty` has the rules.
#![forbid(unsafe_code)]

mod act;
mod attention;
mod console;
mod devpts;
mod end;
mod events;
mod file;
mod hangup;
mod ioctl;
mod job;
mod master;
mod pty;
mod read;
mod settings;
mod tty;
mod write;

pub use attention::register_attention;
pub use console::{choose_consoles, init, run_hvc_input, run_input};
pub use devpts::init as init_devpts;
pub use hangup::session_leader_exits;
pub use job::{Caller, JobControl, register_job_control};
pub use master::open_peer;
pub use tty::Tty;
