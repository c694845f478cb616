//! Binding, connecting, listening, accepting, shutting down, closing.
//!
//! Locks: who gives a socket its name, or makes it one that listens or is connected, has its mutex `turn`, so that no two do
//! it at once; it is not held while the backlog is full.

use super::address::{self, Address};
use super::garbage;
use super::unix::{Kind, Role, Socket};
use crate::mm::fallible::{TryGrow, try_arc};
use crate::net::limit;
use crate::sync::Pace;
use crate::vfs::notify::Reason;
use crate::vfs::{Inode, PollEvents};
use abi::socket::Ucred;
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};

/// Connects two fresh sockets to each other.
pub(super) fn join(a: &Arc<Socket>, b: &Arc<Socket>) {
    for (one, other) in [(a, b), (b, a)] {
        let cred = other.state.lock().cred;
        let mut state = one.state.lock();
        state.role = Role::Connected(Arc::downgrade(other));
        state.peer_cred = cred;
    }
}

/// The socket that is bound to a path.
pub fn at_inode(inode: &Arc<dyn Inode>) -> Result<Arc<Socket>> {
    let slot = inode.special().ok_or(Errno::ECONNREFUSED)?;
    let kept = slot.lock().clone();
    kept.and_then(|any| any.downcast::<Bound>().ok())
        .and_then(|bound| bound.0.upgrade())
        .ok_or(Errno::ECONNREFUSED)
}

/// What a bound path's inode keeps.
struct Bound(Weak<Socket>);

impl Socket {
    /// Gives the socket an abstract name: EINVAL if it has one.
    pub fn bind_abstract(self: &Arc<Self>, name: &Arc<address::Bytes>) -> Result<()> {
        let _turn = self.turn.lock();
        self.check_unbound()?;
        address::claim(name, self)?;
        self.state.lock().name = Address::Abstract(name.clone());
        Ok(())
    }

    /// Gives the socket any free abstract name, unless it has one, which may have come this moment.
    pub fn bind_any(self: &Arc<Self>) -> Result<()> {
        let _turn = self.turn.lock();
        if self.check_unbound().is_ok() {
            let name = address::claim_any(self)?;
            self.state.lock().name = name;
        }
        Ok(())
    }

    /// Who wants credentials (SO_PASSCRED) and connects or sends has a name from then on: any free one if it had none.
    pub fn bind_for_creds(self: &Arc<Self>) -> Result<()> {
        let wants = self.state.lock().wants_name();
        if wants { self.bind_any() } else { Ok(()) }
    }

    /// EINVAL if it has a name already.
    fn check_unbound(&self) -> Result<()> {
        if self.state.lock().name == Address::Unnamed { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Binds the socket to the inode that was made for its path; EINVAL if it has a name already.
    pub fn bind_inode(self: &Arc<Self>, name: &Address, inode: &Arc<dyn Inode>) -> Result<()> {
        let _turn = self.turn.lock();
        self.check_unbound()?;
        let slot = inode.special().ok_or(Errno::EOPNOTSUPP)?;
        let bound = try_arc(Bound(Arc::downgrade(self)))?;
        let old = slot.lock().replace(bound);
        drop(old);
        let mut state = self.state.lock();
        state.name = name.clone();
        state.bound = Some(inode.clone());
        Ok(())
    }

    /// `listen`.
    pub fn listen(&self, backlog: i32, cred: Ucred) -> Result<()> {
        if !self.kind.is_connected_kind() {
            return Err(Errno::EOPNOTSUPP);
        }
        let backlog = limit::backlog(backlog);
        let _turn = self.turn.lock();
        let mut state = self.state.lock();
        if state.name == Address::Unnamed {
            return Err(Errno::EINVAL);
        }
        state.cred = cred;
        match &mut state.role {
            Role::Listener { backlog: old, .. } => *old = backlog,
            Role::Single => state.role = Role::Listener { backlog, pending: VecDeque::new() },
            Role::Connected(_) => return Err(Errno::EINVAL),
        }
        drop(state);
        self.for_room.wake_all();
        Ok(())
    }

    /// `connect` to a socket found by name.
    pub fn connect(
        self: &Arc<Self>,
        target: &Arc<Socket>,
        nonblock: bool,
        cred: Ucred,
    ) -> Result<()> {
        if target.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if self.kind == Kind::Datagram {
            self.state.lock().role = Role::Connected(Arc::downgrade(target));
            self.peer_changed();
            return Ok(());
        }
        let limit = self.send_limit();
        loop {
            if self.try_connect(target, cred)? {
                target.for_reading.wake_events(PollEvents::READABLE.bits());
                target.listeners.tell(Reason::In);
                return Ok(());
            }
            if nonblock {
                return Err(Errno::EAGAIN);
            }
            let has_room = || (!target.backlog_is_full()).then_some(());
            limit.wait(&target.for_room, has_room)?;
        }
    }

    /// False when the backlog is full. EISCONN or EINVAL if the socket connects or listens already.
    fn try_connect(self: &Arc<Self>, target: &Arc<Socket>, cred: Ucred) -> Result<bool> {
        let _turn = self.turn.lock();
        match &self.state.lock().role {
            Role::Single => {}
            Role::Connected(_) => return Err(Errno::EISCONN),
            Role::Listener { .. } => return Err(Errno::EINVAL),
        }
        let server = Socket::new(self.kind, Ucred::default())?;
        let mut listening = target.state.lock();
        if listening.read_shut {
            return Err(Errno::ECONNREFUSED);
        }
        let (name, listener_cred) = (listening.name.clone(), listening.cred);
        let buffer = listening.buffer;
        let Role::Listener { backlog, pending } = &mut listening.role else {
            return Err(Errno::ECONNREFUSED);
        };
        if pending.len() > *backlog {
            return Ok(false);
        }
        pending.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        {
            // Only the registry knows the new socket yet, so nobody who holds its lock waits for another.
            let mut state = server.state.lock();
            state.name = name;
            state.cred = listener_cred;
            state.peer_cred = cred;
            state.buffer = buffer;
            state.role = Role::Connected(Arc::downgrade(self));
        }
        pending.try_push(server.clone())?;
        drop(listening);
        let mut state = self.state.lock();
        state.cred = cred;
        state.peer_cred = listener_cred;
        state.role = Role::Connected(Arc::downgrade(&server));
        Ok(true)
    }

    fn backlog_is_full(&self) -> bool {
        match &self.state.lock().role {
            Role::Listener { backlog, pending } => pending.len() > *backlog,
            _ => false,
        }
    }

    /// `connect` of a datagram socket to AF_UNSPEC: forgets the peer.
    pub fn disconnect(&self) -> Result<()> {
        if self.kind != Kind::Datagram {
            return Err(Errno::EINVAL);
        }
        self.state.lock().role = Role::Single;
        self.peer_changed();
        Ok(())
    }

    /// `accept`.
    pub(super) fn accept(&self, nonblock: bool) -> Result<Arc<Socket>> {
        if !self.kind.is_connected_kind() {
            return Err(Errno::EOPNOTSUPP);
        }
        let take = || match &mut self.state.lock().role {
            Role::Listener { pending, .. } => pending.pop_front().map(Ok),
            _ => Some(Err(Errno::EINVAL)),
        };
        let accepted = self.receive_limit().take(&self.for_reading, nonblock, take)?;
        self.for_room.wake_all();
        Ok(accepted)
    }

    /// `shutdown`.
    pub fn shut_down(&self, read: bool, write: bool) -> Result<()> {
        let peer = self.peer();
        let mut state = self.state.lock();
        if self.kind.is_connected_kind() && matches!(state.role, Role::Single) {
            return Err(Errno::ENOTCONN);
        }
        state.read_shut |= read;
        state.write_shut |= write;
        drop(state);
        if let Some(peer) = peer
            && self.kind.is_connected_kind()
        {
            let mut state = peer.state.lock();
            // What one end does not send, the other cannot receive; and the other way round.
            state.read_shut |= write;
            state.write_shut |= read;
            drop(state);
            match (read, write) {
                (true, true) => peer.wake_and_tell(Reason::HungUp),
                (false, true) => peer.wake_and_tell(Reason::In),
                _ => drop(peer.wake_everyone()),
            }
        }
        self.wake_everyone();
        Ok(())
    }

    /// The last file is gone.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let name = core::mem::replace(&mut state.name, Address::Unnamed);
        let bound = state.bound.take();
        let role = core::mem::replace(&mut state.role, Role::Single);
        // A byte out of band that was read leaves a mark, which is nothing to be missed.
        let mark = usize::from(state.queue.front().is_some_and(|first| first.rest().is_empty()));
        let unread = state.queue.take_all();
        state.read_shut = true;
        state.write_shut = true;
        state.is_closed = true;
        drop(state);
        self.peer_changed();
        match name {
            Address::Abstract(name) if !matches!(role, Role::Connected(_)) || self.owns(&name) => {
                address::release(&name);
            }
            _ => {}
        }
        if let Some(slot) = bound.as_ref().and_then(|inode| inode.special()) {
            let kept = slot.lock().take();
            drop(kept);
        }
        match role {
            Role::Connected(peer) => {
                if let Some(peer) = peer.upgrade() {
                    self.leave(&peer, unread.len() > mark);
                }
            }
            Role::Listener { pending, .. } => {
                for never_accepted in pending.into_iter().paced() {
                    never_accepted.state.lock().error = None;
                    never_accepted.close_unaccepted();
                    let unread = never_accepted.state.lock().queue.take_all();
                    garbage::release(unread);
                }
            }
            Role::Single => {}
        }
        self.wake_everyone();
        garbage::release(unread);
        garbage::closed();
    }

    /// Whether an abstract name in the namespace is this socket's (an accepted socket shows its listener's).
    fn owns(&self, name: &address::Bytes) -> bool {
        address::find(name).is_ok_and(|owner| core::ptr::eq(Arc::as_ptr(&owner), self))
    }

    /// Tells the peer that this end is gone; bytes it never read are an error there.
    fn leave(&self, peer: &Socket, had_unread: bool) {
        if !self.kind.is_connected_kind() {
            peer.wake_everyone();
            return;
        }
        let mut state = peer.state.lock();
        state.peer_gone = true;
        state.read_shut = true;
        state.write_shut = true;
        if had_unread {
            state.error = Some(Errno::ECONNRESET);
        }
        drop(state);
        peer.wake_and_tell(Reason::HungUp);
    }

    /// A connection that the listener never accepted.
    fn close_unaccepted(&self) {
        let peer = self.peer();
        if let Some(peer) = peer {
            self.leave(&peer, true);
        }
    }
}
