//! A socket as an open file: read, write, poll, close.

use super::receive::How;
use super::transfer::Outgoing;
use super::unix::{Kind, Role, Socket};
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::sync::PollTable;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::tty::FIONREAD;
use abi::{Errno, Result};
use alloc::sync::Arc;

const TIOCOUTQ: u32 = 0x5411;
const SIOCATMARK: u32 = 0x8905;

/// The open file.
pub struct SocketFile(pub Arc<Socket>);

impl FileOps for SocketFile {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() == 0 {
            return Ok(0);
        }
        Ok(self.0.receive(dst, How { nonblock: f.nonblock(), ..How::default() })?.bytes)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        self.0.send(src, Outgoing { nonblock: f.nonblock(), ..Outgoing::default() })
    }

    fn raises_sigpipe(&self) -> bool {
        self.0.kind() == Kind::Stream
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        self.0.poll(table)
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        let count = match cmd {
            FIONREAD => self.0.readable_bytes()?,
            TIOCOUTQ => self.0.peer().map_or(0, |peer| peer.state.lock().queue.bytes()),
            SIOCATMARK => self.0.is_at_mark()?.into(),
            _ => return Err(Errno::ENOTTY),
        };
        UserPtr::<i32>::new(arg).write(&i32::try_from(count).unwrap_or(i32::MAX))?;
        Ok(0)
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        self.0.listeners.changed(f, fd)
    }

    fn release(&self, _f: &OpenFile) {
        self.0.close();
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}

impl Socket {
    /// A stream's bytes, or the size of the first message.
    fn readable_bytes(&self) -> Result<usize> {
        let state = self.state.lock();
        match (&state.role, self.kind) {
            (Role::Listener { .. }, _) => Err(Errno::EINVAL),
            (_, Kind::Datagram) => Ok(state.queue.front().map_or(0, |m| m.bytes.len())),
            _ => Ok(state.queue.bytes()),
        }
    }

    fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_reading);
        table.watch(&self.for_writing);
        let mut ready = PollEvents::empty();
        let state = self.state.lock();
        if state.error.is_some() {
            ready |= PollEvents::ERR;
        }
        if let Role::Listener { pending, .. } = &state.role {
            if !pending.is_empty() {
                ready |= PollEvents::READABLE;
            }
            return ready;
        }
        if !state.queue.is_empty() || state.read_shut {
            ready |= PollEvents::READABLE;
        }
        if state.read_shut {
            ready |= PollEvents::RDHUP;
        }
        if state.queue.has_urgent() {
            ready |= PollEvents::PRI;
        }
        let unconnected = self.kind.is_connected_kind() && matches!(state.role, Role::Single);
        if unconnected || (state.read_shut && state.write_shut) {
            ready |= PollEvents::HUP;
        }
        let buffer = state.buffer;
        drop(state);
        if self.peer_has_room(buffer) {
            ready |= PollEvents::WRITABLE;
        }
        ready
    }
}
