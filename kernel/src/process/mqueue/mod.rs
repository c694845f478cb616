//! POSIX message queues: a queue (`queue`) of messages (`message`), what goes through it (`transfer`), who waits for what
//! (`waiter`) and who is told of the first (`registration`, `notify`); the file system that they are files of (`filesystem`), as files (`file`) and by the names of
//! mq_open (`names`); how many there may be (`limits`).
#![forbid(unsafe_code)]

mod file;
mod filesystem;
mod limits;
mod message;
mod names;
mod notify;
mod queue;
mod registration;
mod transfer;
mod waiter;

pub use file::of_file;
pub use names::{open, unlink};
pub use queue::{Queue, Shape};
pub use registration::How;
pub use transfer::Patience;

/// Adds the settings to /proc and the file system to those that can be mounted; once, at boot.
pub(super) fn register() -> abi::Result<()> {
    limits::register()?;
    filesystem::init()
}
