//! A request, and requests that are linked.
//!
//! Owns the copies of the entries. Locks: none.

use crate::mm::fallible::TryGrow;
use abi::uring::{Sqe, sqe};
use abi::{Errno, Result};
use alloc::collections::VecDeque;

/// An entry, and why it cannot be carried out, if it cannot.
#[derive(Clone, Copy)]
pub struct Request {
    pub sqe: Sqe,
    pub refused: Option<Errno>,
}

impl Request {
    pub fn has(&self, flag: u8) -> bool {
        self.sqe.flags & flag != 0
    }

    /// Whether the next entry waits for it.
    pub fn is_linked(&self) -> bool {
        self.has(sqe::IO_LINK | sqe::IO_HARDLINK)
    }
}

/// Requests each of which waits for the one before.
#[derive(Default)]
pub struct Chain {
    pub requests: VecDeque<Request>,
    /// One of them cannot be carried out, so none is.
    pub is_refused: bool,
}

impl Chain {
    /// Whether it waits for all that was submitted before.
    pub fn is_drained(&self) -> bool {
        self.requests.iter().any(|request| request.has(sqe::IO_DRAIN))
    }

    pub fn add(&mut self, request: Request) -> Result<()> {
        self.requests.try_push(request)?;
        self.is_refused |= request.refused.is_some();
        Ok(())
    }
}
