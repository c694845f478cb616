//! What waits to be received: messages with their sender, descriptors and credentials.
//!
//! A plain queue; the socket's lock guards it. Never copies to user memory: a message is taken out with its bytes.

use super::address::Address;
use super::flight::Flight;
use crate::mm::fallible::{TryDeque, TryGrow};
use crate::time::Nanos;
use crate::vfs::OpenFile;
use abi::socket::Ucred;
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What travels beside the bytes.
#[derive(Default)]
pub struct Ancillary {
    pub files: Vec<Arc<OpenFile>>,
    pub cred: Ucred,
    /// When it was sent, on the wall clock, if the receiver wanted to know then.
    pub time: Option<Nanos>,
    /// Counts the files as in flight.
    pub flight: Option<Flight>,
}

impl Ancillary {
    /// Credentials alone.
    pub fn of(cred: Ucred) -> Self {
        Self { cred, ..Self::default() }
    }

    /// For MSG_PEEK: the copies of files that it gives are not in flight.
    pub fn try_clone(&self) -> Result<Self> {
        let mut files = Vec::new();
        files.try_extend(self.files.iter().cloned())?;
        Ok(Self { files, cred: self.cred, time: self.time, flight: None })
    }
}

/// One message; on a stream, one write.
pub struct Message {
    pub bytes: Vec<u8>,
    /// How many of them a stream reader has taken.
    pub taken: usize,
    pub from: Option<Address>,
    pub ancillary: Ancillary,
}

impl Message {
    /// The bytes that are left.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

/// What a message takes beside its bytes, as Linux counts it: empty ones must not be free.
const OVERHEAD: usize = 640;

/// Messages in order.
#[derive(Default)]
pub struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
}

/// The queue keeps room for so many messages that were taken out and will be put back.
const SPARE: usize = 1;

impl Queue {
    /// Bytes in all messages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory that the messages take.
    pub fn charge(&self) -> usize {
        self.bytes.saturating_add(self.messages.len().saturating_mul(OVERHEAD))
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds one; `ENOBUFS`.
    pub fn push(&mut self, message: Message) -> Result<()> {
        let more = message.bytes.len();
        self.messages.try_room(1 + SPARE).map_err(|_| Errno::ENOBUFS)?;
        self.messages.try_push(message)?;
        self.bytes += more;
        Ok(())
    }

    pub fn front(&self) -> Option<&Message> {
        self.messages.front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    pub fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.rest().len();
        Some(message)
    }

    /// Puts a message back that was not used up; `ENOBUFS` if more than [`SPARE`] readers do that at once and there is no
    /// memory.
    pub fn put_back(&mut self, message: Message) -> Result<()> {
        let more = message.rest().len();
        self.messages.try_push_front(message).map_err(|_| Errno::ENOBUFS)?;
        self.bytes += more;
        Ok(())
    }

    /// Takes all messages out, to be dropped without the lock.
    pub fn take_all(&mut self) -> VecDeque<Message> {
        self.bytes = 0;
        core::mem::take(&mut self.messages)
    }
}
