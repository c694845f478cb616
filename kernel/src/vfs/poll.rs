//! Waiting for several files at once: what `poll` and `select` share.
//!
//! Owns nothing between calls. The waiting task is registered with all queues of all files; the registrations end, each in
//! constant time, before this returns. The files stay referenced meanwhile.
#![forbid(unsafe_code)]

pub use abi::fs::PollEvents;

use super::object::file::OpenFile;
use crate::sync::wait::{Deadline, Moment, WaitError, wait_alone};
use crate::sync::{Pace, PollTable};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Only look.
    None,
    /// Until this time of the monotonic clock.
    Until(Deadline),
    /// As long as it takes.
    Forever,
}

/// Entries that are looked at before other tasks may run.
const AT_ONCE: usize = 64;

/// One file to look at, and what for.
pub struct Watched {
    /// `None`: nothing to look at (a negative or closed descriptor).
    pub file: Option<Arc<OpenFile>>,
    pub wanted: PollEvents,
    /// What was found; set before the call for entries without a file.
    pub found: PollEvents,
}

/// Waits until at least one entry has something to report, and says how many have: 0 when time ran out.
/// ERESTARTNOHAND when a signal arrives, ENOMEM if there is no memory to wait in so many queues.
pub fn wait(entries: &mut [Watched], patience: Patience) -> Result<usize> {
    let ready = look_awake(entries, &mut PollTable::look());
    if ready > 0 || patience == Patience::None {
        return Ok(ready);
    }
    let deadline = match patience {
        Patience::Until(deadline) => Some(Moment::monotonic(deadline)),
        _ => None,
    };
    let mut table = PollTable::register_current(entries.len());
    let ready = look_awake(entries, &mut table);
    // Dropping this takes the task out of the queues.
    let _registrations = table.finish()?;
    if ready > 0 {
        return Ok(ready);
    }
    let outcome = wait_alone(deadline, || match look(entries, &mut PollTable::look()) {
        0 => None,
        ready => Some(ready),
    });
    match outcome {
        Ok(ready) => Ok(ready),
        Err(WaitError::TimedOut) => Ok(0),
        Err(WaitError::Interrupted) => Err(Errno::ERESTARTNOHAND),
    }
}

/// As [`look`], for a task that is not about to sleep: other tasks may run in between.
fn look_awake(entries: &mut [Watched], table: &mut PollTable) -> usize {
    let looks = entries.chunks_mut(AT_ONCE).paced();
    looks.map(|some| look(some, table)).sum()
}

/// Looks at every entry once; must not block, because it also runs when the task is about to
/// sleep and already marked so.
fn look(entries: &mut [Watched], table: &mut PollTable) -> usize {
    let mut ready = 0;
    for entry in entries {
        if let Some(file) = &entry.file {
            entry.found = file.poll(table) & entry.wanted;
        }
        ready += usize::from(!entry.found.is_empty());
    }
    ready
}
