//! What becomes of a request: it is done, or it waits.
//!
//! Owns nothing but what it says. Never keeps a request. Locks: none.

use crate::vfs::{OpenFile, PollEvents};
use abi::uring::{Cqe, Sqe};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What became of a request.
pub enum Outcome {
    Done(Done),
    /// It would have to wait.
    Waits(Wait),
}

/// What a request waits for.
pub struct Wait {
    pub file: Option<Arc<OpenFile>>,
    pub wanted: PollEvents,
    pub deadline: Option<u64>,
    /// What was moved before.
    pub moved: u32,
}

/// Whether a call that may not wait says by this that it would have to.
#[inline]
pub fn would_wait(error: Errno) -> bool {
    error == Errno::EAGAIN || error == Errno::EINTR || error.is_restart()
}

/// What a completion says; a link may break though there is no error.
#[derive(Clone, Copy)]
pub struct Done {
    pub res: i32,
    pub flags: u32,
    pub breaks_link: bool,
}

impl Done {
    #[inline]
    pub fn of(result: Result<i64>) -> Self {
        // A call that a signal ended is not begun again.
        let res = match result {
            Ok(value) => value as i32,
            Err(error) if error.is_restart() => Errno::EINTR.to_return() as i32,
            Err(error) => error.to_return() as i32,
        };
        Self { res, flags: 0, breaks_link: res < 0 }
    }

    #[inline]
    pub fn completion(&self, sqe: &Sqe) -> Cqe {
        Cqe { user_data: sqe.user_data, res: self.res, flags: self.flags }
    }

    /// Of a request that can neither go on nor wait: what was moved before is more than an error, but the link breaks.
    pub fn of_part(moved: u32, error: Errno) -> Self {
        let res = if moved == 0 { Err(error) } else { Ok(i64::from(moved)) };
        Self { breaks_link: true, ..Self::of(res) }
    }
}

impl Outcome {
    pub fn of(result: Result<i64>) -> Self {
        Self::Done(Done::of(result))
    }
}
