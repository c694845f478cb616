//! A request, and requests that are linked.
//!
//! Owns the copies of the entries. Locks: none.

use super::kept::Kept;
use crate::mm::fallible::TryGrow;
use abi::uring::{Sqe, op, sqe};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// Where an operation puts the file that it makes, if not among the descriptors of the process: a place of the ring's files, or any.
#[derive(Clone, Copy)]
pub enum Direct {
    Any,
    At(u32),
}

impl Direct {
    /// What an entry says of it; nothing for a descriptor.
    #[inline]
    pub fn of(file_index: u32) -> Option<Self> {
        match file_index {
            u32::MAX => Some(Self::Any),
            index => index.checked_sub(1).map(Self::At),
        }
    }
}

/// An entry, and why it cannot be carried out, if it cannot.
#[derive(Clone)]
pub struct Request {
    pub sqe: Sqe,
    pub refused: Option<Errno>,
    /// Bytes that were moved already, with MSG_WAITALL: the entry says what is left.
    pub moved: u32,
    /// What the entry points at, once it cannot be carried out at once.
    pub kept: Option<Arc<Kept>>,
}

impl Request {
    /// Reads what the entry points at, before the program may use that memory for something else.
    pub fn keep(&mut self) -> Result<()> {
        if self.kept.is_none() {
            self.kept = Kept::of(&self.sqe)?;
        }
        Ok(())
    }

    /// Whether what the entry points at can be read. Linux reads it before it carries the request out: one of which that cannot be read ends its batch.
    #[cold]
    pub fn can_be_read(&self) -> bool {
        Kept::of(&self.sqe).is_ok()
    }

    /// As [`keep`](Self::keep); an entry that points at nothing cannot be carried out.
    fn keep_or_refuse(&mut self) {
        if self.refused.is_none() {
            self.refused = self.keep().err();
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.sqe.flags & flag != 0
    }

    /// A part was moved: the rest is still to be.
    pub fn has_moved(&mut self, more: u32) {
        // A message's header stays as it is.
        if !matches!(self.sqe.opcode, op::RECVMSG | op::SENDMSG | op::SENDMSG_ZC) {
            self.sqe.addr = self.sqe.addr.wrapping_add(more.into());
            self.sqe.len = self.sqe.len.saturating_sub(more);
        }
        self.moved = self.moved.saturating_add(more);
    }

    /// What a completion says of it: the bytes that were moved before count, and are more than an error.
    pub fn result(&self, res: i32) -> i32 {
        match (self.moved.cast_signed(), res) {
            (0, _) => res,
            (moved, ..0) => moved,
            (moved, more) => moved.saturating_add(more),
        }
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

    /// Adds a request: why it cannot be carried out, if it cannot. ENOMEM if there is no room for it.
    pub fn add(&mut self, request: &Request) -> Result<Option<Errno>> {
        let mut request = request.clone();
        request.keep_or_refuse();
        let refused = request.refused;
        self.requests.try_push(request)?;
        self.is_refused |= refused.is_some();
        Ok(refused)
    }
}
