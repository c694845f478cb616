//! What waits to be received: messages with their sender, descriptors and credentials.
//!
//! A plain queue; the socket's lock guards it. Never copies to user memory: a message is taken out with its bytes, and what is
//! left of it is put back. The socket's mutex `turn` sees to it that at most one is out.

use super::address::Address;
use super::flight::Flight;
use super::sender;
use crate::mm::fallible::{TryGrow, try_copy};
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
    /// Who sent it, if the sender said so or one of the two wanted to know.
    pub cred: Option<Ucred>,
    /// When it was sent, on the wall clock, if the receiver wanted to know then.
    pub time: Option<Nanos>,
    /// Counts the files as in flight.
    pub flight: Option<Flight>,
}

impl Ancillary {
    /// Has the sender's credentials from now on, if somebody `asked` and the sender has not said them.
    pub fn tell_sender(&mut self, asked: bool) {
        if asked && self.cred.is_none() {
            self.cred = Some(sender::current());
        }
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

    /// For MSG_PEEK: a copy of what is left, of at most `room` bytes.
    pub fn peek(&self, room: usize) -> Result<Self> {
        let rest = self.rest();
        Ok(Self {
            bytes: try_copy(&rest[..rest.len().min(room)])?,
            taken: 0,
            from: self.from.clone(),
            ancillary: self.ancillary.try_clone()?,
        })
    }
}

/// What a message takes beside its bytes, as Linux counts it: empty ones must not be free.
const OVERHEAD: usize = 640;

/// Messages in order.
#[derive(Default)]
pub struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Bytes of a message that a reader has taken out and will put back, less what it uses of them: they still count.
    out: usize,
}

/// The queue keeps room for the message that is out.
const SPARE: usize = 1;

impl Queue {
    /// Bytes in all messages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory that the messages take.
    pub fn charge(&self) -> usize {
        self.bytes.saturating_add(self.len().saturating_mul(OVERHEAD))
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.messages.len() + usize::from(self.out != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// The message that has so many before it.
    pub fn at(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    /// Takes the first message out, of which `room` bytes will be used: something is left in the queue if it has more.
    pub fn take(&mut self, room: usize) -> Option<Message> {
        debug_assert_eq!(self.out, 0, "two messages of a stream are out");
        let message = self.messages.pop_front()?;
        let rest = message.rest().len();
        if rest > room {
            self.out = rest;
        } else {
            self.bytes -= rest;
        }
        Some(message)
    }

    /// Puts back the message that is out.
    #[expect(clippy::disallowed_methods, reason = "its room was kept")]
    pub fn put_back(&mut self, message: Message) {
        self.bytes = self.bytes - core::mem::take(&mut self.out) + message.rest().len();
        self.messages.push_front(message);
    }

    /// Takes all messages out, to be dropped without the lock.
    pub fn take_all(&mut self) -> VecDeque<Message> {
        self.bytes = 0;
        self.out = 0;
        core::mem::take(&mut self.messages)
    }
}
