//! Receiving: a reader takes a message out of the queue, copies it, and puts back what is left.
//!
//! Owns nothing. On a stream one reader at a time does that (the mutex `turn`), so that bytes keep their order and no reader
//! sleeps beside bytes that another has only borrowed; nobody waits for bytes while it has the turn. A datagram is not put
//! back: MSG_PEEK copies. Never copies to user memory under a spinlock. Locks: `turn`, then `Stream`.

use super::address::Address;
use super::garbage;
use super::queue::{Ancillary, Message, Next, Reader};
use super::unix::{Kind, Role, Socket, State};
use crate::mm::Sink;
use crate::sync::MutexGuard;
use crate::vfs::PollEvents;
use abi::socket::Ucred;
use abi::{Errno, Result};

/// What was received, beside the bytes.
#[derive(Default)]
pub struct Incoming {
    /// Bytes that were stored.
    pub bytes: usize,
    /// Bytes the message had.
    pub full: usize,
    pub from: Option<Address>,
    pub ancillary: Option<Ancillary>,
}

/// How to receive.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub nonblock: bool,
    pub peek: bool,
    /// Streams: wait until all has come that there is room for.
    pub wait_all: bool,
}

/// What a step of a read found.
enum Found {
    /// A message, that which had so many before it, and whether the reader asks for credentials.
    Message(Message, usize, bool),
    /// One that is read no more.
    Passed(Message),
    End,
}

/// How a read goes on.
enum Step {
    /// Something was read: it goes on if there is room.
    Read,
    /// Nothing was: it goes on.
    Passed,
    /// It ends.
    Last,
}

/// The right to read a stream.
type Turn<'a> = MutexGuard<'a, ()>;

impl State {
    /// Whether it is of a kind that receives from a peer only, and has none.
    fn lacks_peer(&self, kind: Kind) -> bool {
        kind.is_connected_kind() && !matches!(self.role, Role::Connected(_))
    }

    /// Why there is nothing to wait for: an error, or `None` for the end of what there will ever be.
    fn end<T>(&mut self, kind: Kind) -> Option<Result<Option<T>>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        if self.read_shut || self.peer_gone {
            return Some(Ok(None));
        }
        if self.lacks_peer(kind) {
            return Some(Err(match kind {
                Kind::Stream => Errno::EINVAL,
                _ => Errno::ENOTCONN,
            }));
        }
        None
    }

    /// Whether a reader has nothing to wait for.
    fn is_ready(&self, kind: Kind) -> bool {
        !self.queue.is_empty()
            || self.error.is_some()
            || self.read_shut
            || self.peer_gone
            || self.lacks_peer(kind)
    }
}

/// A read of a stream under way.
struct Reading<'s, 'd, 'k> {
    socket: &'s Socket,
    dst: &'d mut Sink<'k>,
    how: How,
    got: Incoming,
    turn: Option<Turn<'s>>,
    /// Whose bytes these are, if the reader wants to know: a read does not mix two senders.
    sender: Option<Option<Ucred>>,
    /// How many messages MSG_PEEK has seen.
    seen: usize,
    /// How many bytes behind those it does not look at.
    skip: usize,
}

impl<'s> Reading<'s, '_, '_> {
    /// Reads; what ends it before it got anything is an error.
    fn run(mut self) -> Result<Incoming> {
        loop {
            match self.step() {
                Ok(Step::Passed) => {}
                // As on Linux, who only looks without room left still sees the descriptors of what comes next.
                Ok(Step::Read) if self.dst.remaining() > 0 || self.how.peek => {}
                Err(error) if self.got.bytes == 0 => return Err(error),
                _ => break,
            }
        }
        self.got.full = self.got.bytes;
        Ok(self.got)
    }

    /// Reads one message, or a part of it.
    fn step(&mut self) -> Result<Step> {
        let room = self.dst.remaining();
        let (how, seen, sender, skip) = (self.how, self.seen, self.sender, self.skip);
        let has_some = self.got.bytes > 0;
        let kind = self.socket.kind;
        let has_enough = |least: u32| room == 0 || self.got.bytes >= least as usize;
        let ends = self.got.bytes > 0 && !how.wait_all && has_enough(self.socket.low_water());
        let nonblock = how.nonblock || ends;
        let next = self.next(nonblock, |state| {
            let of_another =
                |message: &Message| sender.is_some_and(|cred| cred != message.ancillary.cred);
            let asks = state.pass_cred;
            let reader = Reader { peek: how.peek, has_some, inline: state.oob_inline };
            let (next, skip) = match skip {
                0 => (state.queue.next(seen, reader), 0),
                _ => state.queue.next_behind(seen, reader, skip),
            };
            let at = match next {
                Next::At(at) => at,
                Next::Mark => return Some(Ok(Found::End)),
                Next::Passed => return state.queue.take(usize::MAX).map(Found::Passed).map(Ok),
                Next::Nothing if seen > 0 => return Some(Ok(Found::End)),
                Next::Skipped if has_some => return Some(Ok(Found::End)),
                // The next read tells of an error.
                Next::Nothing if ends => return Some(Ok(Found::End)),
                // Who only looks and had no room for what he saw waits for more, as on Linux.
                Next::Nothing | Next::Skipped => {
                    return state.end::<()>(kind).map(|end| end.map(|_| Found::End));
                }
            };
            let found = match state.queue.at(at)? {
                message if of_another(message) => return Some(Ok(Found::End)),
                message if how.peek => message.peek(skip, room),
                _ => state.queue.take(room).map(Ok)?,
            };
            Some(found.map(|message| Found::Message(message, at, asks)))
        })?;
        let (message, at, asks) = match next {
            Found::Message(message, at, asks) => (message, at, asks),
            Found::Passed(message) => {
                forget(message);
                self.socket.tell_room();
                return Ok(Step::Passed);
            }
            Found::End => return Ok(Step::Last),
        };
        self.seen = at;
        self.skip = 0;
        if !message.ancillary.files.is_empty() {
            garbage::wait_for_search();
        }
        if asks && self.sender.is_none() {
            self.sender = Some(message.ancillary.cred);
        }
        self.store(message)
    }

    /// Copies what there is room for, and puts back what is left.
    fn store(&mut self, mut message: Message) -> Result<Step> {
        let socket = self.socket;
        let wanted = message.rest().len().min(self.dst.remaining());
        let put = if wanted == 0 { Ok(0) } else { self.dst.put(&message.rest()[..wanted]) };
        if put.unwrap_or(0) < wanted {
            // As on Linux, nothing of the message is read then.
            if !self.how.peek {
                socket.state.lock().queue.put_back(message);
                socket.for_reading.wake_events(PollEvents::READABLE.bits());
            }
            return Err(Errno::EFAULT);
        }
        self.got.bytes += wanted;
        socket.peek_offset.pass(self.how.peek, wanted);
        let cred = self.sender.flatten();
        let got =
            self.got.ancillary.get_or_insert_with(|| Ancillary { cred, ..Ancillary::default() });
        // Descriptors belong to the bytes they came with: a read never runs past them.
        let has_files = !message.ancillary.files.is_empty();
        let after = if has_files { Step::Last } else { Step::Read };
        if has_files {
            got.files = core::mem::take(&mut message.ancillary.files);
            message.ancillary.flight = None;
        }
        if self.how.peek {
            self.seen += 1;
            return Ok(after);
        }
        message.taken += wanted;
        if message.rest().is_empty() {
            socket.tell_room();
        } else {
            socket.state.lock().queue.put_back(message);
        }
        Ok(after)
    }

    /// What `take` gives, waiting for it; after that this reader has the turn.
    fn next<T>(
        &mut self,
        nonblock: bool,
        mut take: impl FnMut(&mut State) -> Option<Result<T>>,
    ) -> Result<T> {
        let socket = self.socket;
        let mut limit = None;
        loop {
            let turn = self.turn.take().unwrap_or_else(|| socket.turn.lock());
            let taken = take(&mut socket.state.lock());
            if taken.is_some() || nonblock {
                self.turn = Some(turn);
                return taken.unwrap_or(Err(Errno::EAGAIN));
            }
            drop(turn);
            let limit = *limit.get_or_insert_with(|| socket.receive_limit());
            let woken = limit.wait(&socket.for_reading, || match socket.turn.try_lock() {
                Some(turn) => take(&mut socket.state.lock()).map(|taken| Some((turn, taken))),
                // Who has the turn leaves something, it seems: that is worth waiting for the turn.
                None => socket.state.lock().is_ready(socket.kind).then_some(None),
            })?;
            if let Some((turn, taken)) = woken {
                self.turn = Some(turn);
                return taken;
            }
        }
    }
}

/// Drops a message that nobody reads any more.
fn forget(message: Message) {
    if !message.ancillary.files.is_empty() {
        garbage::wait_for_search();
    }
    drop(message);
}

impl Socket {
    /// The byte of a stream that was sent out of band, which leaves a mark: EINVAL if there is none, or it is among the others.
    pub fn receive_urgent(&self, dst: &mut Sink<'_>, peek: bool) -> Result<usize> {
        if self.kind != Kind::Stream {
            return Err(Errno::EOPNOTSUPP);
        }
        let _turn = self.turn.lock();
        let mut state = self.state.lock();
        if state.lacks_peer(self.kind) || state.oob_inline {
            return Err(Errno::EINVAL);
        }
        let (byte, mark) = state.queue.take_urgent(peek).ok_or(Errno::EINVAL)?;
        drop(state);
        if let Some(mark) = mark {
            forget(mark);
            self.tell_room();
        }
        if dst.remaining() > 0 && dst.put(&[byte])? == 0 {
            return Err(Errno::EFAULT);
        }
        Ok(1)
    }

    /// SIOCATMARK: whether the reader of a stream is where a byte out of band is or was; EOPNOTSUPP.
    pub(super) fn is_at_mark(&self) -> Result<bool> {
        if self.kind != Kind::Stream {
            return Err(Errno::EOPNOTSUPP);
        }
        let _turn = self.turn.lock();
        Ok(self.state.lock().queue.is_at_mark())
    }

    /// Receives: on a stream up to `dst`'s size, else one message.
    pub fn receive(&self, dst: &mut Sink<'_>, how: How) -> Result<Incoming> {
        if self.kind != Kind::Stream {
            return self.receive_message(dst, how);
        }
        let got = Incoming::default();
        let skip = self.peek_offset.of(how.peek).unwrap_or(0);
        Reading { socket: self, dst, how, got, turn: None, sender: None, seen: 0, skip }.run()
    }

    fn receive_message(&self, dst: &mut Sink<'_>, how: How) -> Result<Incoming> {
        let room = dst.remaining();
        let take = || {
            let mut state = self.state.lock();
            // As on Linux, an error comes before what waits; on a stream it comes behind that.
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            let first = match how.peek {
                true => state.queue.peeked(self.peek_offset.of(true)),
                false => state.queue.front().map(|message| (message, 0)),
            };
            let found = match first {
                Some((message, skip)) if how.peek => {
                    message.peek(skip, room).map(|copy| (copy, message.bytes.len() - skip))
                }
                Some((message, _)) => {
                    let full = message.bytes.len();
                    Ok((state.queue.take(full)?, full))
                }
                None => return state.end(self.kind),
            };
            Some(found.map(Some))
        };
        let next = self.receive_limit().take(&self.for_reading, how.nonblock, take)?;
        let Some((message, full)) = next else { return Ok(Incoming::default()) };
        if !message.ancillary.files.is_empty() {
            garbage::wait_for_search();
        }
        if !how.peek {
            self.tell_room();
        }
        let wanted = full.min(room);
        let bytes = if wanted == 0 { 0 } else { dst.put(&message.bytes[..wanted])? };
        if bytes < wanted {
            return Err(Errno::EFAULT);
        }
        self.peek_offset.pass(how.peek, if how.peek { bytes } else { full });
        Ok(Incoming { bytes, full, from: message.from, ancillary: Some(message.ancillary) })
    }
}
