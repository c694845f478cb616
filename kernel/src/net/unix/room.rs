//! Room at the peer: what a sender that does not block waits for with poll and epoll.
//!
//! A poll registers with the queues of the socket that it looks at, never with the peer's: a socket may get another peer
//! while somebody watches it. When there is no room, the socket itself registers with the queue of the peer that it has
//! (its [`Relay`]), and passes on what it hears there. A new peer, or none, ends that.
//!
//! Owns the relay of each socket. Locks: `Leaf` around the relay; what was in it is dropped with nothing locked. A
//! relay wakes `for_writing` under the lock of the peer's `for_room`; nothing that waits in a `for_writing` wakes a
//! `for_room`, so that goes one way only.

use super::unix::{Kind, Socket};
use crate::sync::{PollTable, Registrations, SpinLock, level};
use crate::vfs::PollEvents;
use abi::Result;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

/// A socket's registration with the queue of its peer.
pub(super) struct Relay {
    /// The peer; its memory is not used again while this refers to it, so the two can be compared.
    to: SpinLock<Option<(Weak<Socket>, Option<Registrations>)>, level::Leaf>,
    /// Whether there is one. Relaxed: a hint for the sender that found room; a relay that stays is only of no use.
    is_set: AtomicBool,
}

impl Relay {
    pub fn new() -> Self {
        Self { to: SpinLock::new(None), is_set: AtomicBool::new(false) }
    }

    fn is_to(&self, peer: &Arc<Socket>) -> bool {
        self.to.lock().as_ref().is_some_and(|(to, _)| core::ptr::eq(to.as_ptr(), &**peer))
    }

    /// Ends it; whether there was one.
    fn end(&self) -> bool {
        let ended = {
            let mut to = self.to.lock();
            self.is_set.store(false, Ordering::Relaxed);
            to.take()
        };
        ended.is_some()
    }
}

impl Socket {
    /// Whether `other` is the peer.
    pub(super) fn is_connected_to(&self, other: &Socket) -> bool {
        self.state.lock().is_peer(other)
    }

    /// Whether `sender` would find room here. As on Linux, a stream has room when three quarters of the buffer are free.
    fn has_room_for(&self, sender: &Socket, buffer: usize) -> bool {
        let state = self.state.lock();
        // Two that are connected with each other are limited by their buffers alone.
        if sender.kind == Kind::Datagram && !state.is_peer(sender) {
            !state.is_full()
        } else {
            state.queue.charge().saturating_mul(4) <= buffer
        }
    }

    /// A message was taken: who waits for room is woken, and who listens for it told once there is enough.
    #[inline]
    pub(super) fn tell_room(&self) {
        self.for_room.wake_events(PollEvents::WRITABLE.bits());
        if self.owes_room.load(Ordering::Relaxed) {
            self.tell_peer_of_room();
        }
    }

    #[cold]
    fn tell_peer_of_room(&self) {
        let Some(peer) = self.peer() else { return };
        let buffer = peer.state.lock().buffer;
        if self.has_room_for(&peer, buffer) {
            self.owes_room.store(false, Ordering::Relaxed);
            peer.listeners.tell_room();
        }
    }

    /// There was no room at `peer`: who listens is told when there is. The caller looks for room after this.
    fn listen_for_room_at(&self, peer: &Socket) {
        if self.listeners.lack_room() {
            peer.owes_room.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the peer has room. If not, pollers of this socket are woken when that may have changed.
    pub(super) fn peer_has_room(&self, buffer: usize) -> bool {
        let Some(peer) = self.peer() else { return true };
        // Without memory for a relay nobody would be woken: then a writer had better try than wait.
        peer.has_room_for(self, buffer)
            || self.hear_of_room_at(&peer).is_err()
            || peer.has_room_for(self, buffer)
    }

    /// From now on `for_writing` is woken when `peer` makes room. The caller looks for room after this.
    pub(super) fn hear_of_room_at(&self, peer: &Arc<Socket>) -> Result<()> {
        self.listen_for_room_at(peer);
        if self.relay.is_to(peer) {
            return Ok(());
        }
        let mut table = PollTable::register(self.for_writing.clone(), false, 1);
        table.watch(&peer.for_room);
        let registrations = table.finish()?;
        let old = {
            let mut to = self.relay.to.lock();
            self.relay.is_set.store(true, Ordering::Relaxed);
            to.replace((Arc::downgrade(peer), registrations))
        };
        drop(old);
        // The peer may have changed meanwhile, and whoever changed it found no relay to end.
        if !self.is_connected_to(peer) {
            self.peer_changed();
        }
        Ok(())
    }

    /// A message found room: the relay is of no use until one does not.
    #[inline]
    pub(super) fn found_room(&self) {
        if self.relay.is_set.load(Ordering::Relaxed) {
            self.peer_changed();
        }
    }

    /// The peer has changed: the relay to the old one ends, and pollers look again.
    pub(super) fn peer_changed(&self) {
        if self.relay.end() {
            self.for_writing.wake_all();
        }
    }
}
