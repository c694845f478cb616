//! Boot of processes: the idle tasks, the other CPUs, kernel threads, process 1.

pub(super) mod cpus;
pub(super) mod init;
mod init_words;
pub mod khugepaged;
pub(super) mod kthread;
pub mod watchdog;
