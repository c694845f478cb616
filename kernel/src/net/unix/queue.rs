//! What waits to be received: messages with their sender, descriptors and credentials.
//!
//! A plain queue; the socket's lock guards it. Never copies to user memory: a message is taken out with its bytes, and what is
//! left of it is put back. The socket's mutex `turn` sees to it that at most one is out.

use super::address::Address;
use super::flight::Flight;
use super::sender;
use crate::mm::fallible::{TryGrow, try_copy};
use crate::net::peek::{Peekable, peeked};
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
    /// MSG_PEEK has seen that it is empty.
    pub is_seen: bool,
}

impl Peekable for Message {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn is_seen(&self) -> bool {
        self.is_seen
    }

    fn see(&mut self) {
        self.is_seen = true;
    }
}

impl Message {
    /// The bytes that are left.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// For MSG_PEEK: a copy of what is left behind `skip` bytes, of at most `room` bytes.
    pub fn peek(&self, skip: usize, room: usize) -> Result<Self> {
        let rest = &self.rest()[skip..];
        Ok(Self {
            bytes: try_copy(&rest[..rest.len().min(room)])?,
            taken: 0,
            is_seen: false,
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
    /// How many have left at the front, and so many had left and stood before the one of a stream that is out of band.
    gone: u64,
    urgent: Option<u64>,
}

/// Who reads a stream.
#[derive(Clone, Copy)]
pub struct Reader {
    /// It only looks.
    pub peek: bool,
    /// It has bytes already.
    pub has_some: bool,
    /// It wants bytes out of band among the others (SO_OOBINLINE).
    pub inline: bool,
}

/// What a reader of a stream meets.
pub enum Next {
    /// The message that has so many before it.
    At(usize),
    /// The place of a byte out of band, at which a read ends.
    Mark,
    /// A message at the front that it does not read: it is to be taken out.
    Passed,
    Nothing,
    /// Nothing but bytes out of band, which who only looks skips.
    Skipped,
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

    /// Adds one that is out of band: what was before is among the others from now on.
    pub fn push_urgent(&mut self, message: Message) -> Result<()> {
        self.push(message)?;
        self.urgent = Some(self.gone + self.messages.len() as u64 - 1);
        Ok(())
    }

    /// Whether a byte out of band has not been read.
    pub fn has_urgent(&self) -> bool {
        self.urgent.is_some()
    }

    fn is_urgent(&self, index: usize) -> bool {
        self.urgent == Some(self.gone + index as u64)
    }

    /// Whether the message at this place was out of band, and has been read.
    fn is_read(&self, index: usize) -> bool {
        self.messages.get(index).is_some_and(|message| message.rest().is_empty())
    }

    /// Whether a reader of the stream is where a byte out of band is or was.
    pub fn is_at_mark(&self) -> bool {
        let was_here = || self.is_read(0) && (self.urgent.is_none() || self.is_urgent(1));
        !self.messages.is_empty() && (self.is_urgent(0) || was_here())
    }

    /// What a reader meets who has seen so many messages.
    #[inline]
    pub fn next(&mut self, from: usize, reader: Reader) -> Next {
        match self.messages.get(from) {
            None => Next::Nothing,
            Some(message) if self.urgent.is_none() && !message.rest().is_empty() => Next::At(from),
            Some(_) => self.next_with_marks(from, reader),
        }
    }

    /// The same of who passes over so many bytes: how many of them are of the message that it meets. As on Linux, a byte out of
    /// band is passed over, or met, as one among the others, but for one that is the very next.
    #[cold]
    pub fn next_behind(&mut self, from: usize, reader: Reader, mut skip: usize) -> (Next, usize) {
        let next = self.next(from, reader);
        let Next::At(mut at) = next else { return (next, 0) };
        while let Some(message) = self.messages.get(at) {
            let len = message.rest().len();
            if skip < len {
                return (Next::At(at), skip);
            }
            skip -= len;
            at += 1;
        }
        (Next::Nothing, 0)
    }

    #[cold]
    fn next_with_marks(&mut self, from: usize, reader: Reader) -> Next {
        let mut at = from;
        while at < self.messages.len() {
            let is_read = self.is_read(at);
            let is_mark = if is_read { self.urgent.is_none() } else { self.is_urgent(at) };
            if is_mark && reader.has_some {
                return Next::Mark;
            }
            if !is_read && !is_mark {
                return Next::At(at);
            }
            if !reader.peek && is_mark && !is_read {
                // Whoever is here will not ask for it.
                self.urgent = None;
            }
            match reader {
                Reader { inline: true, .. } if !is_read => return Next::At(at),
                Reader { peek: false, .. } => return Next::Passed,
                _ => at += 1,
            }
        }
        if at > from { Next::Skipped } else { Next::Nothing }
    }

    /// The byte out of band, and if it is taken the mark before it, for which nobody has a use any more.
    pub fn take_urgent(&mut self, peek: bool) -> Option<(u8, Option<Message>)> {
        let index = usize::try_from(self.urgent?.checked_sub(self.gone)?).ok()?;
        let message = self.messages.get_mut(index)?;
        let byte = *message.rest().first()?;
        if peek {
            return Some((byte, None));
        }
        message.taken += 1;
        self.bytes -= 1;
        self.urgent = None;
        let before = index.checked_sub(1).filter(|&before| self.is_read(before));
        Some((byte, before.and_then(|before| self.messages.remove(before))))
    }

    pub fn front(&self) -> Option<&Message> {
        self.messages.front()
    }

    /// The datagram that MSG_PEEK looks at with this offset, as [`crate::net::peek::peeked`] finds it.
    pub fn peeked(&mut self, offset: Option<usize>) -> Option<(&Message, usize)> {
        peeked(&mut self.messages, offset)
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
        self.gone += 1;
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
        self.gone -= 1;
        self.messages.push_front(message);
    }

    /// Takes all messages out, to be dropped without the lock.
    pub fn take_all(&mut self) -> VecDeque<Message> {
        self.bytes = 0;
        self.out = 0;
        self.urgent = None;
        core::mem::take(&mut self.messages)
    }
}
