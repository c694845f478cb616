//! Sending and receiving on a TCP connection.
//!
//! A sender copies from user memory first and then puts the bytes into the peer's queue. A reader takes
//! pieces out, copies them, and puts back what is left; the mutex `turn` keeps other readers, and who ends the connection, away
//! meanwhile, but never while it waits.

use super::bytes::{Bytes, Piece, Urgent};
use super::tcp::{Guard, Role, Tcp};
use crate::mm::fallible::TryGrow;
use crate::mm::{Sink, Source};
use crate::net::control::check_socket_control;
use crate::net::count;
use crate::net::limit::TimeLimit;
use crate::net::option::{known, more};
use crate::net::socket::{Incoming, Outgoing, copy_in};
use crate::sync::pace::interrupted;
use crate::vfs::PollEvents;
use crate::vfs::notify::{Reason, urgent};
use abi::net::TcpState;
use abi::socket::{MsgFlags, SOL_SOCKET};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// At most so many bytes are copied at once.
const CHUNK: usize = 64 * 1024;

/// At most so much of a send buffer counts, since the bytes are in the kernel's memory.
const MOST_UNSENT: usize = 256 * 1024;

/// Where bytes go.
enum Target {
    Peer(Arc<Tcp>),
    /// The peer is closed and forgotten.
    Gone(Weak<Tcp>),
}

/// Stores bytes, or with MSG_TRUNC nothing of them; EFAULT.
#[inline]
fn store(dst: &mut Sink<'_>, bytes: &[u8], flags: MsgFlags) -> Result<()> {
    if flags.contains(MsgFlags::TRUNC) || dst.put(bytes)? == bytes.len() {
        return Ok(());
    }
    Err(Errno::EFAULT)
}

/// What a reader has seen of the bytes that are left in the queue: nothing, `skip` being 0, unless it only looks (MSG_PEEK).
struct Seen {
    /// Where it began, and where it goes on: so many bytes are before that.
    skip: usize,
    upto: usize,
    /// How many bytes were gone from the queue then.
    gone: u64,
}

impl Seen {
    /// As on Linux, once another reader has taken some it begins again at what is there.
    fn follow(&mut self, received: &Bytes) {
        if self.gone != received.gone() {
            (self.upto, self.gone) = (self.skip, received.gone());
        }
    }

    /// Whether there is more.
    fn is_less_than(&self, received: &Bytes) -> bool {
        let upto = if self.gone == received.gone() { self.upto } else { self.skip };
        received.len() > upto
    }
}

impl Tcp {
    /// The urgent byte has come.
    pub(super) fn take_urgent(&self, mut state: Guard<'_>, byte: Option<u8>) {
        if let Some(byte) = byte {
            count::data(state.local.is_ipv6(), 1);
            state.urgent = Some(byte);
        }
        drop(state);
        urgent::tell(self.options.file());
        self.tell_readable(PollEvents::PRI);
        // As on Linux: once for the mark, once for the byte, which takes a place among the others.
        self.options.listeners.tell(Reason::In);
    }

    /// Bytes that the peer's queue takes in all.
    fn capacity(&self, peer: &Tcp) -> usize {
        self.options.send_buffer().min(MOST_UNSENT) + peer.options.receive_buffer()
    }

    /// Room in the peer's queue, and all there can be.
    fn room(&self) -> Option<(usize, usize)> {
        let peer = self.connected_peer()?;
        let capacity = self.capacity(&peer);
        let held = peer.state.lock().held();
        Some((capacity.saturating_sub(held), capacity))
    }

    /// Whether there is enough room for poll to say so; a socket without peer never waits for room.
    pub(super) fn room_is_worth_it(&self) -> bool {
        // Of buffers that take a byte or two a third is nothing, and no room is never enough.
        self.room().is_none_or(|(room, capacity)| room >= (capacity / 3).max(1))
    }

    /// Where bytes go now, or why they cannot. `None` if there is no connection yet. `since`: how often the socket had been
    /// disconnected when it was first asked, which is the sender's connection.
    fn target(&self, since: &mut Option<u64>) -> Result<Option<Target>> {
        let mut state = self.state.lock();
        let is_other = *since.get_or_insert(state.disconnects) != state.disconnects;
        match &state.role {
            _ if is_other => Err(state.error.take().unwrap_or(Errno::EPIPE)),
            Role::Connecting => Ok(None),
            Role::Connected(peer) if !state.write_shut && state.error.is_none() => {
                let gone = || Target::Gone(peer.clone());
                Ok(Some(peer.upgrade().map_or_else(gone, Target::Peer)))
            }
            _ => Err(state.error.take().unwrap_or(Errno::EPIPE)),
        }
    }

    pub(super) fn send_bytes(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        for control in how.control.iter().filter(|control| control.level == SOL_SOCKET) {
            check_socket_control(control)?;
        }
        let limit = self.options.timeouts().begin_send();
        let mut done = 0;
        let mut since = None;
        loop {
            match self.send_some(src, how, limit, &mut since) {
                Ok(0) => return Ok(done),
                Ok(sent) if src.remaining() == 0 => return Ok(done + sent),
                Ok(sent) => done += sent,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a piece; 0 when there is nothing left.
    fn send_some(
        &self,
        src: &mut Source<'_>,
        how: &Outgoing<'_>,
        limit: TimeLimit,
        since: &mut Option<u64>,
    ) -> Result<usize> {
        let (target, room) = loop {
            match self.target(since)? {
                Some(Target::Peer(peer)) => match self.room() {
                    Some((0, _)) if how.nonblock => {
                        // The reader looks at this after it has made room, so one of the two sees the other.
                        self.state.lock().no_space = true;
                        self.options.listeners.lack_room();
                        if matches!(self.room(), Some((0, _))) {
                            return Err(Errno::EAGAIN);
                        }
                    }
                    Some((0, _)) => self.wait_for_room(limit, *since)?,
                    Some((room, _)) => break (Target::Peer(peer), room),
                    None => break (Target::Peer(peer), CHUNK),
                },
                Some(gone) => break (gone, CHUNK),
                None if how.nonblock => return Err(Errno::EAGAIN),
                None => self.wait_connected(limit, since.unwrap_or_default())?,
            }
        };
        if src.remaining() == 0 {
            return Ok(0);
        }
        let mut bytes = copy_in(src, src.remaining().min(room).min(CHUNK))?;
        let count = bytes.len();
        let is_urgent = how.flags.contains(MsgFlags::OOB) && src.remaining() == 0;
        let inline = const { known(SOL_SOCKET, more::OOBINLINE) };
        let peer = match target {
            Target::Peer(peer) => peer,
            Target::Gone(peer) => {
                self.refused(&peer);
                return Ok(count);
            }
        };
        let urgent = if is_urgent && !peer.options.is_on(inline) { bytes.pop() } else { None };
        if !self.put(&peer, bytes)? {
            self.refused(&peer.me);
        } else if is_urgent {
            self.put_urgent(&peer, urgent);
        }
        Ok(count)
    }

    /// Gives the peer the urgent byte, unless it wants that among the others, where it is already.
    fn put_urgent(&self, peer: &Tcp, byte: Option<u8>) {
        let mut state = peer.state.lock();
        if !state.is_connected_to(&self.me) {
            return;
        }
        if peer.hears_all(&state) {
            return peer.take_urgent(state, byte);
        }
        let before = state.unheard.bytes.len();
        state.unheard.urgent = Some(Urgent { before, byte });
        drop(state);
        peer.hear();
    }

    /// Puts bytes into the peer's queue, even a little more than its room if another sender was faster. False
    /// if the peer has ended this connection: it would answer with a reset.
    fn put(&self, peer: &Tcp, bytes: Vec<u8>) -> Result<bool> {
        let mut state = peer.state.lock();
        if state.orphan || !state.is_connected_to(&self.me) {
            return Ok(false);
        }
        if bytes.is_empty() {
            return Ok(true);
        }
        if !peer.hears_all(&state) {
            peer.hear_later(&mut state, bytes)?;
            drop(state);
            peer.hear();
            return Ok(true);
        }
        let count = bytes.len();
        state.received.push(bytes)?;
        count::data(state.local.is_ipv6(), count);
        let enough = state.received.len() >= peer.options.low_water();
        drop(state);
        if enough {
            peer.tell_readable(PollEvents::empty());
        }
        Ok(true)
    }

    fn wait_for_room(&self, limit: TimeLimit, since: Option<u64>) -> Result<()> {
        limit.wait(&self.for_writing, || {
            let over = {
                let mut state = self.state.lock();
                state.no_space = true;
                let is_other = since.is_some_and(|since| since != state.disconnects);
                is_other || state.write_shut || state.error.is_some()
            };
            (over || self.room_is_worth_it()).then_some(())
        })
    }

    pub(super) fn receive_bytes(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        nonblock: bool,
    ) -> Result<Incoming> {
        if flags.contains(MsgFlags::OOB) {
            return self.receive_urgent(dst, flags);
        }
        if flags.contains(MsgFlags::ERRQUEUE) {
            // What refuses a connection is a reset, of which there are no reports.
            return self.sends.take(self.family);
        }
        let since = {
            let state = self.state.lock();
            if matches!(state.role, Role::Listener { .. }) {
                return Err(Errno::ENOTCONN);
            }
            state.disconnects
        };
        self.hear_rest();
        let peek = flags.contains(MsgFlags::PEEK);
        let skip = self.peek_offset.of(peek).unwrap_or(0);
        let bytes = self.read(dst, flags, nonblock, (skip, since))?;
        self.peek_offset.pass(peek, bytes);
        Ok(Incoming { bytes, full: bytes, ..Incoming::default() })
    }

    /// Reads, or looks at what is behind `skip` bytes: how many bytes there were. It waits for none once the socket has been
    /// disconnected more often than `since`.
    #[inline]
    fn read(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        nonblock: bool,
        (skip, since): (usize, u64),
    ) -> Result<usize> {
        let room = dst.remaining();
        let all = flags.contains(MsgFlags::WAITALL);
        let least = if all { room } else { room.min(self.options.low_water()) };
        // Even a read of no bytes waits until there are some.
        let enough = least.max(1);
        let limit = self.options.timeouts().begin_receive();
        let peek = flags.contains(MsgFlags::PEEK);
        let mut got = 0;
        let gone = if peek { self.state.lock().received.gone() } else { 0 };
        let mut seen = Seen { skip, upto: skip, gone };
        loop {
            let (bytes, fault) = match peek {
                false => self.take(dst, flags, room - got),
                true => {
                    seen.follow(&self.state.lock().received);
                    self.look(dst, flags, room - got, seen.upto)
                }
            };
            got += bytes;
            seen.upto += if peek { bytes } else { 0 };
            if let (Err(error), 0) = (fault, got) {
                return Err(error);
            }
            let idle = room == 0 && self.state.lock().received.len() > skip;
            if got >= enough || fault.is_err() || idle {
                break;
            }
            if self.hear_rest() {
                match got > 0 && interrupted() {
                    true => break,
                    false => continue,
                }
            }
            match self.nothing_more(got > 0, &seen) {
                Ok(true) => break,
                Ok(false) if nonblock && got > 0 => break,
                Ok(false) if nonblock => return Err(Errno::EAGAIN),
                Ok(false) => {}
                Err(error) => return Err(error),
            }
            match self.wait_for_bytes(&seen, since, limit) {
                Err(_) if got > 0 => break,
                outcome => outcome?,
            }
        }
        Ok(got)
    }

    /// Takes what is there: the count, and whether user memory could be written.
    fn take(&self, dst: &mut Sink<'_>, flags: MsgFlags, room: usize) -> (usize, Result<()>) {
        let mut turn = self.turn.lock();
        let mut done = 0;
        let mut fault = Ok(());
        while done < room && fault.is_ok() {
            let Some(mut piece) = self.state.lock().received.pop(&mut turn) else { break };
            let wanted = piece.rest().len().min(room - done);
            fault = store(dst, &piece.rest()[..wanted], flags);
            // A piece that could not be stored whole stays, and counts nothing.
            let count = if fault.is_ok() { wanted } else { 0 };
            done += count;
            piece.take(count);
            self.state.lock().received.put_back(piece, &mut turn);
        }
        if done > 0 {
            self.tell_room();
        }
        (done, fault)
    }

    /// Looks at what is there behind `skip` bytes: the same.
    #[cold]
    #[inline(never)]
    fn look(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        room: usize,
        mut skip: usize,
    ) -> (usize, Result<()>) {
        let mut turn = self.turn.lock();
        let mut kept: Vec<Piece> = Vec::new();
        let mut done = 0;
        let mut fault = Ok(());
        while done < room && fault.is_ok() {
            let Some(piece) = self.state.lock().received.pop(&mut turn) else { break };
            if kept.try_room(1).is_err() {
                self.state.lock().received.put_back(piece, &mut turn);
                fault = Err(Errno::ENOMEM);
                break;
            }
            let before = skip.min(piece.rest().len());
            skip -= before;
            let wanted = (piece.rest().len() - before).min(room - done);
            fault = store(dst, &piece.rest()[before..before + wanted], flags);
            done += if fault.is_ok() { wanted } else { 0 };
            #[expect(clippy::disallowed_methods, reason = "there is room")]
            kept.push(piece);
        }
        for piece in kept.into_iter().rev() {
            self.state.lock().received.put_back(piece, &mut turn);
        }
        (done, fault)
    }

    /// The peer may write again, if it found no room before.
    fn tell_room(&self) {
        let Some(peer) = self.connected_peer() else { return };
        if !peer.state.lock().no_space || !peer.room_is_worth_it() {
            return;
        }
        peer.state.lock().no_space = false;
        peer.for_writing.wake_events(PollEvents::WRITABLE.bits());
        peer.options.listeners.tell_room();
    }

    /// Whether nothing more will come than was seen; an error is reported only if nothing was received before, and no end of file.
    fn nothing_more(&self, has_some: bool, seen: &Seen) -> Result<bool> {
        let mut state = self.state.lock();
        if seen.is_less_than(&state.received) {
            return Ok(false);
        }
        if has_some {
            return Ok(state.error.is_some() || state.no_more_input());
        }
        // An end of file that has come is read for good, whatever else came behind it: the error is for who sends or asks.
        if state.fin {
            return Ok(true);
        }
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.no_more_input() {
            return Ok(true);
        }
        if state.name() == TcpState::Close { Err(Errno::ENOTCONN) } else { Ok(false) }
    }

    fn wait_for_bytes(&self, seen: &Seen, since: u64, limit: TimeLimit) -> Result<()> {
        limit.wait(&self.for_reading, || {
            let state = self.state.lock();
            if state.disconnects != since {
                return Some(Err(Errno::EPIPE));
            }
            let over =
                state.error.is_some() || state.no_more_input() || state.name() == TcpState::Close;
            (over || seen.is_less_than(&state.received)).then_some(Ok(()))
        })?
    }

    fn receive_urgent(&self, dst: &mut Sink<'_>, flags: MsgFlags) -> Result<Incoming> {
        let mut state = self.state.lock();
        if matches!(state.role, Role::Closed) {
            return Err(Errno::ENOTCONN);
        }
        let byte = state.urgent.ok_or(Errno::EINVAL)?;
        if !flags.contains(MsgFlags::PEEK) {
            state.urgent = None;
        }
        drop(state);
        let bytes = dst.put(&[byte])?;
        Ok(Incoming { bytes, full: bytes, flags: MsgFlags::OOB, ..Incoming::default() })
    }
}
