//! Waiting for several files at once: what poll and select share.
//!
//! Owns nothing between calls. The waiting task is added to all queues of all files, and is taken out of all of them
//! before this returns. The files stay referenced meanwhile.
#![forbid(unsafe_code)]

pub use abi::fs::PollEvents;

use super::file::OpenFile;
use crate::sync::wait::{Deadline, WaitError, current_waker, wait_alone};
use alloc::sync::Arc;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Only look.
    None,
    /// Until this point of the monotonic clock.
    Until(Deadline),
    /// As long as it takes.
    Forever,
}

/// One file to look at, and what for.
pub struct Watched {
    /// `None`: nothing to look at (a negative or closed descriptor).
    pub file: Option<Arc<OpenFile>>,
    pub wanted: PollEvents,
    /// What was found; set before the call for entries without a file.
    pub found: PollEvents,
}

/// Waits until at least one entry has something to report, and says how many have: 0 when time ran out.
pub fn wait(
    entries: &mut [Watched],
    patience: Patience,
) -> Result<usize, crate::sync::Interrupted> {
    let ready = look(entries);
    if ready > 0 || patience == Patience::None {
        return Ok(ready);
    }
    let deadline = match patience {
        Patience::Until(deadline) => Some(deadline),
        _ => None,
    };
    let waker = current_waker();
    for entry in entries.iter() {
        if let Some(file) = &entry.file {
            file.poll(&mut |queue| queue.add(waker.clone(), false));
        }
    }
    let outcome = wait_alone(deadline, || match look(entries) {
        0 => None,
        ready => Some(ready),
    });
    for entry in entries.iter() {
        if let Some(file) = &entry.file {
            file.poll(&mut |queue| {
                queue.remove(&waker);
            });
        }
    }
    match outcome {
        Ok(ready) => Ok(ready),
        Err(WaitError::TimedOut) => Ok(0),
        Err(WaitError::Interrupted) => Err(crate::sync::Interrupted),
    }
}

/// Looks at every entry once; must not block, because it also runs between two halves of going to sleep.
fn look(entries: &mut [Watched]) -> usize {
    let mut ready = 0;
    for entry in entries {
        if let Some(file) = &entry.file {
            entry.found = file.poll(&mut |_| {}) & entry.wanted;
        }
        ready += usize::from(!entry.found.is_empty());
    }
    ready
}
