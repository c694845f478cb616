//! Sending and receiving.
//!
//! A sender copies from user memory into a message of its own and then puts it into the receiver's queue; a
//! receiver takes the message out, copies, and puts back what is left. On a stream one reader at a time does
//! that, so that bytes keep their order.

use super::address::Address;
use super::garbage;
use super::queue::{Ancillary, Message};
use super::unix::{Kind, Role, Socket};
use crate::mm::{Sink, Source};
use crate::net::limit::TimeLimit;
use crate::time;
use crate::vfs::PollEvents;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most bytes of one message on a stream.
const STREAM_CHUNK: usize = 32 * 1024;

/// What to send, beside the bytes.
#[derive(Default)]
pub struct Outgoing {
    /// Datagrams: to whom, if not to the peer.
    pub to: Option<Arc<Socket>>,
    pub ancillary: Ancillary,
    pub nonblock: bool,
}

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

/// The bytes of a message; `ENOBUFS` while little more than the kernel's reserve is left.
fn payload(src: &mut Source<'_>, len: usize) -> Result<Vec<u8>> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOBUFS);
    }
    src.take_vec(len)
}

impl Socket {
    /// Sends: on a stream as much as `src` has, else one message. The bytes sent.
    pub fn send(&self, src: &mut Source<'_>, how: Outgoing) -> Result<usize> {
        self.check_sending()?;
        garbage::note(&how.ancillary.files)?;
        let target = match how.to {
            Some(to) if self.kind == Kind::Stream => {
                drop(to);
                return Err(if self.peer().is_some() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
            }
            Some(to) if self.kind == Kind::Datagram => to,
            _ => self.peer_to_send()?,
        };
        if target.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if self.kind != Kind::Stream {
            return self.send_message(&target, src, how.ancillary, how.nonblock);
        }
        let mut ancillary = Some(how.ancillary);
        let mut done = 0;
        while src.remaining() > 0 {
            let cred = ancillary.as_ref().map(|a| a.cred).unwrap_or_default();
            let beside = ancillary.take().unwrap_or_else(|| Ancillary::of(cred));
            let len = src.remaining().min(STREAM_CHUNK);
            let sent = payload(src, len)
                .and_then(|bytes| self.deliver(&target, bytes, beside, how.nonblock));
            match sent {
                Ok(()) => done += len,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn check_sending(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.write_shut {
            return Err(Errno::EPIPE);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn peer_to_send(&self) -> Result<Arc<Socket>> {
        let state = self.state.lock();
        match &state.role {
            Role::Connected(peer) => match peer.upgrade() {
                Some(peer) => Ok(peer),
                None if self.kind == Kind::Datagram => Err(Errno::ECONNREFUSED),
                None => Err(Errno::EPIPE),
            },
            _ => Err(Errno::ENOTCONN),
        }
    }

    fn send_message(
        &self,
        target: &Arc<Socket>,
        src: &mut Source<'_>,
        ancillary: Ancillary,
        nonblock: bool,
    ) -> Result<usize> {
        let len = src.remaining();
        if len > self.buffer() {
            return Err(Errno::EMSGSIZE);
        }
        let bytes = payload(src, len)?;
        self.deliver(target, bytes, ancillary, nonblock)?;
        Ok(len)
    }

    /// Puts one message into the receiver's queue, waiting for room.
    fn deliver(
        &self,
        target: &Arc<Socket>,
        bytes: Vec<u8>,
        ancillary: Ancillary,
        nonblock: bool,
    ) -> Result<()> {
        let from = match self.kind {
            Kind::Datagram => Some(self.name()),
            _ => None,
        };
        let mut message = Some(Message { bytes, taken: 0, from, ancillary });
        let mut attempt = || {
            let buffer = {
                let own = self.state.lock();
                if own.write_shut {
                    return Some(Err(Errno::EPIPE));
                }
                own.buffer
            };
            let mut state = target.state.lock();
            if state.read_shut {
                // A closed datagram receiver refuses; one that only shut down breaks the pipe.
                return Some(Err(match (self.kind, state.write_shut) {
                    (Kind::Datagram, true) => Errno::ECONNREFUSED,
                    _ => Errno::EPIPE,
                }));
            }
            let full = match self.kind {
                // Two that are connected with each other are limited by their buffers alone.
                Kind::Datagram if !state.is_peer(self) => state.is_full(),
                _ => state.queue.charge() >= buffer,
            };
            if full {
                return None;
            }
            let Some(mut message) = message.take() else { return Some(Ok(())) };
            message.ancillary.time = state.stamps.map(|_| time::realtime());
            Some(state.queue.push(message))
        };
        let sent = self.send_limit().take(&target.for_room, nonblock, &mut attempt);
        match sent {
            // A poll that comes later is woken even if the room is made before it.
            Err(Errno::EAGAIN) if nonblock && self.is_connected_to(target) => {
                self.hear_of_room_at(target)?;
                attempt().unwrap_or(sent)?;
            }
            other => other?,
        }
        self.found_room();
        target.for_reading.wake_events(PollEvents::READABLE.bits());
        Ok(())
    }

    /// Receives: on a stream up to `dst`'s size (all of it with `wait_all`), else one message.
    pub fn receive(
        &self,
        dst: &mut Sink<'_>,
        nonblock: bool,
        peek: bool,
        wait_all: bool,
    ) -> Result<Incoming> {
        let limit = self.receive_limit();
        if self.kind != Kind::Stream {
            return self.receive_message(dst, nonblock, peek, limit);
        }
        let mut got = Incoming::default();
        while dst.remaining() > 0 {
            let message = match self.next_message(nonblock || (got.bytes > 0 && !wait_all), limit) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) if got.bytes > 0 => break,
                Err(error) => return Err(error),
            };
            // Descriptors belong to the bytes they came with: a read never runs past them.
            let has_files = !message.ancillary.files.is_empty();
            if got.bytes > 0 && (has_files || got.ancillary_differs(&message.ancillary)) {
                self.put_back(message)?;
                break;
            }
            if let Err(error) = self.take_stream_bytes(message, dst, peek, &mut got) {
                return if got.bytes > 0 { Ok(got) } else { Err(error) };
            }
            if peek {
                break;
            }
        }
        got.full = got.bytes;
        Ok(got)
    }

    fn take_stream_bytes(
        &self,
        mut message: Message,
        dst: &mut Sink<'_>,
        peek: bool,
        got: &mut Incoming,
    ) -> Result<()> {
        let put = dst.put(message.rest());
        let n = *put.as_ref().unwrap_or(&0);
        got.bytes += n;
        let first = got.ancillary.is_none();
        if peek {
            if first {
                match message.ancillary.try_clone() {
                    Ok(copy) => got.ancillary = Some(copy),
                    Err(error) => return self.put_back(message).and(Err(error)),
                }
            }
            self.put_back(message)?;
            return put.map(drop);
        }
        message.taken += n;
        if n > 0 && first {
            let cred = message.ancillary.cred;
            let files = core::mem::take(&mut message.ancillary.files);
            got.ancillary = Some(Ancillary { files, cred, time: None, flight: None });
        }
        if message.rest().is_empty() {
            self.for_room.wake_events(PollEvents::WRITABLE.bits());
        } else {
            self.put_back(message)?;
        }
        put.map(drop)
    }

    fn put_back(&self, message: Message) -> Result<()> {
        self.state.lock().queue.put_back(message)
    }

    fn receive_message(
        &self,
        dst: &mut Sink<'_>,
        nonblock: bool,
        peek: bool,
        limit: TimeLimit,
    ) -> Result<Incoming> {
        let Some(message) = self.next_message(nonblock, limit)? else {
            return Ok(Incoming::default());
        };
        let full = message.bytes.len();
        let wanted = full.min(dst.remaining());
        let put = if wanted == 0 { Ok(0) } else { dst.put(&message.bytes[..wanted]) };
        let from = message.from.clone();
        let ancillary = if peek {
            let copy = message.ancillary.try_clone();
            self.put_back(message)?;
            copy?
        } else {
            self.for_room.wake_events(PollEvents::WRITABLE.bits());
            message.ancillary
        };
        let bytes = put?;
        if bytes < wanted {
            return Err(Errno::EFAULT);
        }
        Ok(Incoming { bytes, full, from, ancillary: Some(ancillary) })
    }

    /// Takes the first message, waiting for one; `None` at the end of what there will ever be.
    fn next_message(&self, nonblock: bool, limit: TimeLimit) -> Result<Option<Message>> {
        let take = || {
            let mut state = self.state.lock();
            if let Some(message) = state.queue.pop() {
                return Some(Ok(Some(message)));
            }
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            if state.read_shut || state.peer_gone {
                return Some(Ok(None));
            }
            if self.kind.is_connected_kind() && !matches!(state.role, Role::Connected(_)) {
                return Some(Err(match self.kind {
                    Kind::Stream => Errno::EINVAL,
                    _ => Errno::ENOTCONN,
                }));
            }
            None
        };
        let taken = limit.take(&self.for_reading, nonblock, take);
        if let Ok(Some(message)) = &taken
            && !message.ancillary.files.is_empty()
        {
            garbage::wait_for_search();
        }
        taken
    }
}

impl Incoming {
    /// Bytes of another sender are not mixed into one read when credentials are asked for.
    fn ancillary_differs(&self, next: &Ancillary) -> bool {
        self.ancillary.as_ref().is_some_and(|first| first.cred != next.cred)
    }
}
