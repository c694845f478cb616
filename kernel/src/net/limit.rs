//! [`TimeLimit`]: how long one call on a socket may wait; and the limit of a backlog. Both for all families.
//!
//! Owns `net.core.somaxconn`. Never begins a limit anew within one call. Locks: none; [`TimeLimit::wait`] sleeps.

use crate::sync::WaitQueue;
use crate::sync::wait::{Deadline, WaitError};
use crate::time;
use abi::{Errno, Result};

crate::setting! {
    /// `net.core.somaxconn`: the largest backlog of a listener.
    pub static SOMAXCONN = 4096, 0..=i32::MAX;
}

/// The backlog of a listener that asks for `asked`; a negative number is the largest.
pub fn backlog(asked: i32) -> usize {
    let most = SOMAXCONN.get() as usize;
    usize::try_from(asked).unwrap_or(most).min(most)
}

/// SO_RCVTIMEO and SO_SNDTIMEO in nanoseconds; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    pub receive: u64,
    pub send: u64,
}

impl Timeouts {
    /// The limit of a receiving call that begins now.
    pub fn begin_receive(self) -> TimeLimit {
        TimeLimit::begin(self.receive)
    }

    /// The limit of a sending call that begins now.
    pub fn begin_send(self) -> TimeLimit {
        TimeLimit::begin(self.send)
    }
}

/// The deadline of all waits of one call.
#[derive(Clone, Copy)]
pub struct TimeLimit(Option<Deadline>);

impl TimeLimit {
    fn begin(limit: u64) -> Self {
        Self((limit != 0).then(|| time::since_boot_ns().saturating_add(limit)))
    }

    /// Waits in `queue` until `cond` gives a value: `EAGAIN` when time ran out. A signal is `EINTR` under a
    /// limit, since a restarted call would begin with the whole limit again, and `ERESTARTSYS` without one.
    pub fn wait<R>(self, queue: &WaitQueue, cond: impl FnMut() -> Option<R>) -> Result<R> {
        queue.wait_deadline(self.0, cond).map_err(|error| match error {
            WaitError::Interrupted if self.0.is_some() => Errno::EINTR,
            WaitError::Interrupted => Errno::ERESTARTSYS,
            WaitError::TimedOut => Errno::EAGAIN,
        })
    }

    /// What `take` gives at once; else `EAGAIN` with `nonblock`, or [`wait`](Self::wait).
    pub fn take<R>(
        self,
        queue: &WaitQueue,
        nonblock: bool,
        mut take: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        match take() {
            Some(taken) => taken,
            None if nonblock => Err(Errno::EAGAIN),
            None => self.wait(queue, take)?,
        }
    }
}
