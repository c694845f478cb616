//! Tasks and processes: scheduling, signals, exec, exit and wait, futexes.
//!
//! A [`Task`] is a thread; a [`Process`] is what its threads share. `sched` runs tasks, `clone` makes them,
//! `exit` and `wait` end them, `exec` gives them a program, `table` finds them by number. Nothing here touches
//! hardware or raw memory: `arch::task` and `mm` do. Lock order: see `sync::level` (PidTable, ProcessTree,
//! ProcessState, Signal, ..., WaitQueue, RunQueue); tree locks are taken from parent to child.
#![deny(unsafe_code)]

mod caller;
pub mod clone;
pub mod cpu_clock;
mod cpu_limit;
mod cpus;
pub mod exec;
pub mod exit;
mod family;
pub mod fault;
pub mod futex;
mod group;
mod init;
mod init_words;
pub mod itimer;
pub mod kthread;
pub mod limits;
mod members;
pub mod oom;
pub mod pidfd;
pub mod posix_timer;
mod process;
mod procfs;
pub mod rseq;
pub mod sched;
pub mod signal;
mod table;
mod task;
pub mod terminal;
pub mod times;
mod users;
pub mod wait;
pub mod watchdog;
pub mod work;

pub use cpus::start_cpus;
pub use fault::LastTrap;
pub use group::{Group, Session, new_session, set_group};
pub use init::{exit_to_user, init, run_idle, start_init};
pub use kthread::spawn_kernel_thread;
pub use process::Process;
pub use procfs::{may_attach, may_look_into};
pub use sched::{cond_resched, load_average, schedule_timeout};
pub use table::{count, for_each_in_group, for_each_process, lookup, lookup_group, lookup_task};
pub use task::{COMM_LEN, Task};

crate::running_tasks! {
    /// The tasks that run on the CPUs.
    static TASKS: Task
}

/// The running task, in its own hands.
pub type Current = crate::arch::current::Current<Task>;

/// Ambiguous, and so an error, if one of them could be given to another thread or left in a static.
const _: fn() = || {
    trait StaysHere<Why> {
        fn check() {}
    }
    struct IsSend;
    struct IsSync;
    impl<T> StaysHere<()> for T {}
    impl<T: Send> StaysHere<IsSend> for T {}
    impl<T: Sync> StaysHere<IsSync> for T {}
    <Current as StaysHere<_>>::check();
    <crate::sync::OwnerRef<i32> as StaysHere<_>>::check();
};

/// The running task.
#[inline]
pub fn current() -> Current {
    TASKS.current()
}

/// A counted reference to the running task.
#[inline]
pub fn current_arc() -> alloc::sync::Arc<Task> {
    TASKS.current_arc()
}

/// Whether the running task's allocations are never made to fail by `alea.fail_alloc`: process 1, which is the harness, and
/// the kernel's own threads.
pub fn is_spared_faults() -> bool {
    if crate::arch::percpu::current().is_null() {
        return true;
    }
    let task = current();
    task.is_kernel_thread() || task.process().is_init()
}
