//! Sending: a sender copies from user memory into a message of its own and then puts it into the receiver's queue.
//!
//! Owns nothing. Never copies user memory under a lock. Locks: `Stream`, one socket at a time.

use super::garbage;
use super::queue::{Ancillary, Message};
use super::unix::{Kind, Role, Socket, State};
use crate::mm::Source;
use crate::mm::fallible::try_copy;
use crate::net::filter::Shape;
use crate::time;
use crate::vfs::PollEvents;
use crate::vfs::notify::{Reason, urgent};
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
    /// Streams: the last byte goes out of band.
    pub urgent: bool,
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
    pub fn send(self: &Arc<Self>, src: &mut Source<'_>, how: Outgoing) -> Result<usize> {
        let last = usize::from(how.urgent);
        if src.remaining() < last {
            return Err(Errno::EOPNOTSUPP);
        }
        let wants_name = self.check_sending()?;
        garbage::note(&how.ancillary.files)?;
        let target = match how.to {
            Some(to) if self.kind == Kind::Stream => {
                drop(to);
                return Err(if self.peer().is_some() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
            }
            Some(to) if self.kind == Kind::Datagram => to,
            _ => self.peer_to_send()?,
        };
        if wants_name {
            self.bind_any()?;
        }
        if target.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if self.kind != Kind::Stream {
            return self.send_message(&target, src, how.ancillary, how.nonblock);
        }
        let mut ancillary = how.ancillary;
        let mut done = 0;
        while src.remaining() > 0 {
            // Every part has the credentials that the sender claims; what it passes goes with the first.
            let cred = ancillary.cred;
            let beside =
                core::mem::replace(&mut ancillary, Ancillary { cred, ..Ancillary::default() });
            let urgent = src.remaining() == last;
            let len = if urgent { last } else { (src.remaining() - last).min(STREAM_CHUNK) };
            let sent = payload(src, len)
                .and_then(|bytes| self.deliver(&target, bytes, beside, how.nonblock, urgent));
            match sent {
                Ok(()) => done += len,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Whether the socket needs a name to send a message.
    fn check_sending(&self) -> Result<bool> {
        let mut state = self.state.lock();
        if state.write_shut {
            return Err(Errno::EPIPE);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(self.kind != Kind::Stream && state.wants_name()),
        }
    }

    fn peer_to_send(&self) -> Result<Arc<Socket>> {
        let state = self.state.lock();
        match &state.role {
            Role::Connected(peer) => match peer.upgrade() {
                Some(peer) => Ok(peer),
                None if self.kind == Kind::Datagram => {
                    drop(state);
                    self.forget_closed_peer();
                    Err(Errno::ECONNREFUSED)
                }
                None => Err(Errno::EPIPE),
            },
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// A datagram socket has found that its peer is closed: it has none from now on, and what came from there is dropped.
    fn forget_closed_peer(&self) {
        let unread = {
            let mut state = self.state.lock();
            state.role = Role::Single;
            state.queue.take_all()
        };
        self.peer_changed();
        self.for_room.wake_all();
        garbage::release(unread);
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
        let mut bytes = payload(src, len)?;
        match target.filter.admits(&bytes, 1, Shape::bare) {
            // The sender hears nothing of it.
            None => return Ok(len),
            // What is cut off takes no memory: only what is left counts.
            Some(taken) if taken < len => bytes = try_copy(&bytes[..taken])?,
            Some(_) => {}
        }
        self.deliver(target, bytes, ancillary, nonblock, false)?;
        Ok(len)
    }

    /// Puts one message into the receiver's queue, waiting for room.
    fn deliver(
        &self,
        target: &Arc<Socket>,
        bytes: Vec<u8>,
        ancillary: Ancillary,
        nonblock: bool,
        is_urgent: bool,
    ) -> Result<()> {
        let from = match self.kind {
            Kind::Datagram => Some(self.name()),
            _ => None,
        };
        let mut message = Some(Message { bytes, taken: 0, is_seen: false, from, ancillary });
        let mut attempt = || {
            let (buffer, tells) = {
                let own = self.state.lock();
                if own.write_shut {
                    return Some(Err(Errno::EPIPE));
                }
                (own.buffer, own.pass_cred)
            };
            let mut state = target.state.lock();
            if let Some(error) = self.refusal(&state) {
                return Some(Err(error));
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
            // One that nobody has accepted yet may ask for credentials still.
            let asked = tells || state.pass_cred || target.inode() == 0;
            message.ancillary.tell_sender(asked);
            Some(match is_urgent {
                true => state.queue.push_urgent(message),
                false => state.queue.push(message),
            })
        };
        let sent = self.send_limit().take(&target.for_room, nonblock, &mut attempt);
        match sent {
            // A poll that comes later is woken even if the room is made before it.
            Err(Errno::EAGAIN) if nonblock && self.is_connected_to(target) => {
                self.hear_of_room_at(target)?;
                attempt().unwrap_or(sent)?;
            }
            Err(Errno::ECONNREFUSED) if self.is_connected_to(target) => {
                self.forget_closed_peer();
                return sent;
            }
            other => other?,
        }
        self.found_room();
        target.tell_of_message(is_urgent);
        Ok(())
    }

    /// One has come.
    fn tell_of_message(&self, is_urgent: bool) {
        let mut events = PollEvents::READABLE;
        if is_urgent {
            urgent::tell(self.file.get());
            events |= PollEvents::PRI;
        }
        let woken = self.for_reading.wake_events(events.bits());
        // As on Linux, a stream's reader who is woken is told enough by that.
        if !woken || self.kind != Kind::Stream {
            self.listeners.tell(Reason::In);
        }
    }

    /// What a message of this socket meets at one that receives nothing: a closed datagram receiver refuses, one that only shut
    /// down breaks the pipe.
    fn refusal(&self, receiver: &State) -> Option<Errno> {
        receiver.read_shut.then_some(match (self.kind, receiver.is_closed) {
            (Kind::Datagram, true) => Errno::ECONNREFUSED,
            _ => Errno::EPIPE,
        })
    }
}
