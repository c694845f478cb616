//! [`Note`]: a message of the kernel to one socket, for which the socket has room from the beginning (mq_notify, SIGEV_THREAD).
//!
//! Owns the message and its room. Never fails to be told. Locks: the socket's `Stream`.

use super::message::Queued;
use super::netlink::Netlink;
use crate::mm::fallible::TryGrow;
use crate::net::file::of_file;
use crate::net::filter::Shape;
use crate::net::unix;
use crate::vfs::notify::Reason;
use crate::vfs::{OpenFile, PollEvents};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A message that is to be told once, or not at all.
pub struct Note {
    socket: Arc<Netlink>,
    message: Vec<u8>,
}

impl Note {
    /// So long it is.
    pub const LENGTH: usize = 32;
    /// What its last byte says: what was waited for has come, or will not.
    pub const WOKEN: u8 = 1;
    pub const REMOVED: u8 = 2;

    /// A note to a socket of AF_NETLINK: ENOTSOCK, EINVAL. Waits for room.
    pub fn new(file: &OpenFile, message: Vec<u8>) -> Result<Self> {
        let socket = match of_file(file) {
            Ok(socket) => {
                let concrete = socket.clone().concrete().ok_or(Errno::EINVAL)?;
                concrete.downcast::<Netlink>().map_err(|_| Errno::EINVAL)?
            }
            Err(_) if unix::of_file(file).is_ok() => return Err(Errno::EINVAL),
            Err(error) => return Err(error),
        };
        socket.hold_room(message.len())?;
        Ok(Self { socket, message })
    }

    /// Puts it into the socket.
    pub fn tell(mut self, what: u8) {
        if let Some(last) = self.message.last_mut() {
            *last = what;
        }
        self.socket.use_room(core::mem::take(&mut self.message));
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.message.is_empty() {
            self.socket.give_room_back(self.message.len());
        }
    }
}

impl Netlink {
    /// Holds room for a note of so many bytes, waiting for it; EBADF once the socket is closed.
    fn hold_room(&self, bytes: usize) -> Result<()> {
        self.for_notes.wait_interruptible(|| {
            let mut state = self.state.lock();
            if state.closed {
                return Some(Err(Errno::EBADF));
            }
            if state.held > self.options.receive_buffer() {
                return None;
            }
            let notes = state.notes;
            Some(state.queue.try_room(notes + 1).map(|()| {
                state.notes += 1;
                state.held += bytes;
            }))
        })?
    }

    /// Puts a note into the room that was held for it.
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn use_room(&self, mut note: Vec<u8>) {
        let (cost, taken) = (note.len(), self.options.filter.admits(&note, 1, Shape::bare));
        let Some(taken) = taken else { return self.give_room_back(cost) };
        note.truncate(taken);
        let mut state = self.state.lock();
        state.notes -= 1;
        if state.closed {
            drop(state);
            return;
        }
        state.queue.push_back(Queued { bytes: note, cost });
        drop(state);
        self.for_reading.wake_events(PollEvents::READABLE.bits());
        self.options.listeners.tell(Reason::In);
    }

    /// A note of so many bytes will not come.
    fn give_room_back(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.notes -= 1;
        state.held = state.held.saturating_sub(bytes);
        drop(state);
        self.for_notes.wake_all();
    }
}
