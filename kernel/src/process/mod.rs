//! Tasks and processes: scheduling, signals, exec, exit and wait, futexes.
//!
//! A [`Task`] is a thread; a [`Process`] is what its threads share. `sched` runs tasks, `clone` makes them,
//! `exit` and `wait` end them, `exec` gives them a program, `table` finds them by number. Nothing here touches
//! hardware or raw memory: `arch::task::task` and `mm` do. Lock order: see `sync::level` (PidTable, ProcessTree,
//! ProcessState, Signal, ..., WaitQueue, RunQueue); tree locks are taken from parent to child.
#![deny(unsafe_code)]

pub mod coredump;
pub mod exec;
pub mod futex;
pub mod memory;
pub mod mqueue;
pub mod node;
pub mod perf;
mod proc;
pub mod ptrace;
pub mod rings;
pub mod sched;
pub mod seccomp;
pub mod signal;
pub mod start;
pub mod sysv;
pub mod task;
pub mod timers;
pub mod tree;
pub mod watch;

pub use proc::log::tasks as log_tasks;
pub use ptrace::access::{may_attach, may_look_into};
pub use sched::load::load_average;
pub use sched::sleep::without_waiting;
pub use start::cpus::start_cpus;
pub use start::init::{exit_to_user, init, run_idle, start_init};
pub use start::kthread::spawn_kernel_thread;
pub use task::current::{current, current_arc};
pub use task::process::Process;
pub use task::task::{COMM_LEN, Task};
pub use tree::group::{new_session, set_group};
pub use tree::table::{
    count, for_each_in_group, for_each_process, lookup, lookup_group, lookup_task, reference,
};
