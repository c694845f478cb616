//! The end of a connection: shutdown, close, and what the other end notices of them.

use super::bytes::Unheard;
use super::tcp::{Guard, Role, State, Tcp};
use crate::net::addr::Family;
use crate::net::count::{self, Tcp as Tally};
use crate::net::ports::Port;
use crate::sync::Pace;
use crate::vfs::notify::Reason;
use abi::net::TcpState;
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};

/// Counts a reset: a segment that breaks a connection off, or refuses one.
pub(super) fn count_reset(v6: bool) {
    count::tcp(Tally::ResetsSent);
    count::segments(v6, 1, 0);
}

impl State {
    /// Counts a connection that was established and ends without a FIN of both sides, or an attempt to connect that failed.
    fn count_broken(&self) {
        match self.name() {
            TcpState::Established | TcpState::CloseWait => count::tcp(Tally::EstabResets),
            TcpState::SynSent => count::tcp(Tally::AttemptFails),
            _ => {}
        }
    }

    /// The connection is over: gives up the port, unless it was asked for by number and a file still has the socket.
    /// To be dropped unlocked.
    fn free_port(&mut self) -> Option<Port> {
        if self.port_chosen && !self.orphan { None } else { self.port.take() }
    }

    /// The connection is broken off, or never came about. What the filter held is over with it, and with the port to be dropped unlocked.
    fn break_off(&mut self, error: Option<Errno>) -> (Option<Port>, Unheard) {
        self.role = Role::Closed;
        self.error = error;
        self.read_shut = true;
        self.write_shut = true;
        (self.free_port(), self.unheard.take_all())
    }
}

impl Tcp {
    /// `shutdown`.
    pub(super) fn shut(&self, read: bool, write: bool) -> Result<()> {
        let mut state = self.state.lock();
        match &state.role {
            Role::Closed => {
                state.read_shut |= read;
                state.write_shut |= write;
                drop(state);
                self.wake_everyone();
                return Err(Errno::ENOTCONN);
            }
            Role::Listener { .. } if !read => return Ok(()),
            Role::Listener { .. } | Role::Connecting => {
                drop(state);
                // Who waits for the connection is told how that ended, as on Linux.
                self.disconnect_once(None, false);
                return Ok(());
            }
            Role::Connected(_) if state.name() == TcpState::Close => return Err(Errno::ENOTCONN),
            Role::Connected(_) => {}
        }
        state.read_shut |= read;
        drop(state);
        if write {
            self.send_fin();
        }
        self.wake_everyone();
        Ok(())
    }

    /// Sends no more: the peer reads an end of file.
    fn send_fin(&self) {
        let mut state = self.state.lock();
        if state.write_shut {
            return;
        }
        state.write_shut = true;
        // The FIN and its ACK.
        count::segments(state.local.is_ipv6(), 2, 0);
        // The end that closes second has no TIME_WAIT.
        let port = if state.fin { state.free_port() } else { None };
        let peer = match &state.role {
            Role::Connected(peer) => peer.upgrade(),
            _ => None,
        };
        drop(state);
        drop(port);
        if let Some(peer) = peer {
            peer.receive_fin(&self.me);
        }
    }

    fn receive_fin(&self, from: &Weak<Tcp>) {
        let mut state = self.state.lock();
        if !state.is_connected_to(from) {
            return;
        }
        if !self.hears_all(&state) {
            state.unheard.fin = true;
            drop(state);
            self.hear();
            return;
        }
        self.take_fin(state);
    }

    /// The peer sends no more, and that has come.
    pub(super) fn take_fin(&self, mut state: Guard<'_>) {
        state.fin = true;
        // The port of the end that closed first goes to TIME_WAIT.
        let is_over = state.write_shut;
        let port = if is_over { state.port.take() } else { None };
        drop(state);
        if let Some(port) = port {
            port.wait_out();
        }
        if !self.wake_everyone() {
            self.options.listeners.tell(if is_over { Reason::HungUp } else { Reason::In });
            // As on Linux, that nothing more comes is worth reading too.
            self.options.listeners.tell(Reason::In);
        }
    }

    /// What was sent to `peer` met a socket that has no such connection, which answers with a reset.
    pub(super) fn refused(&self, peer: &Weak<Tcp>) {
        count_reset(self.state.lock().local.is_ipv6());
        self.receive_reset(peer);
    }

    /// The peer has broken the connection off.
    fn receive_reset(&self, from: &Weak<Tcp>) {
        let state = self.state.lock();
        if state.is_connected_to(from) {
            self.take_reset(state);
        }
    }

    fn take_reset(&self, mut state: Guard<'_>) {
        if matches!(state.role, Role::Closed | Role::Listener { .. }) {
            return;
        }
        let error = match state.name() {
            TcpState::SynSent => Errno::ECONNREFUSED,
            TcpState::CloseWait => Errno::EPIPE,
            _ => Errno::ECONNRESET,
        };
        state.count_broken();
        let over = state.name() == TcpState::Close;
        let over_with = state.break_off((!over).then_some(error));
        drop(state);
        drop(over_with);
        self.wake_everyone();
        if !over {
            self.options.listeners.tell(Reason::Error);
        }
    }

    /// A connection that was asked for is refused, unless that attempt is over.
    pub(super) fn refuse(&self, attempt: u64) {
        let state = self.state.lock();
        if state.is_asking(attempt) {
            self.take_reset(state);
        }
    }

    /// `connect` to AF_UNSPEC.
    pub(super) fn disconnect(&self) {
        self.disconnect_once(None, true);
    }

    /// Back to a socket without peer: `connect` to AF_UNSPEC or failed, or `shutdown` of one that listens or connects. Not if it was
    /// disconnected more often than `since` by now. Unless it `counts`, those who began before go on.
    pub(super) fn disconnect_once(&self, since: Option<u64>, counts: bool) {
        let mut turn = self.turn.lock();
        let mut state = self.state.lock();
        if since.is_some_and(|since| since != state.disconnects) {
            return;
        }
        state.count_broken();
        let asked = (state.asked.take(), state.attempt);
        // What both ends have ended is broken off for neither.
        let is_over = state.has_peer() && state.name() == TcpState::Close;
        let role = core::mem::replace(&mut state.role, Role::Closed);
        let role = if is_over { Role::Closed } else { role };
        let received = state.received.take_all(&mut turn);
        let unheard = state.unheard.take_all();
        let port = state.free_port();
        if let Some(port) = &state.port {
            port.stop_listening();
        }
        if !state.addr_chosen {
            state.local = core::net::SocketAddr::new(self.family.any(), state.local.port());
        }
        // As on Linux, `getsockname` still tells the port's number, even when the port is given up.
        state.peer = None;
        state.urgent = None;
        state.error = match role {
            Role::Connected(_) | Role::Connecting => Some(Errno::ECONNRESET),
            _ => None,
        };
        (state.connecting, state.joined) = (false, false);
        state.disconnects += u64::from(counts);
        (state.read_shut, state.write_shut, state.fin) = (false, false, false);
        drop(state);
        drop(turn);
        self.peek_offset.set(-1);
        drop((received, unheard, port));
        self.ask_no_more(asked);
        self.abandon(role);
        self.wake_everyone();
    }

    /// Ends what this socket was, for its peers: connections that wait to be accepted, or the one it has.
    fn abandon(&self, role: Role) {
        match role {
            Role::Connected(peer) => {
                if let Some(peer) = peer.upgrade() {
                    count_reset(self.family == Family::V6);
                    peer.receive_reset(&self.me);
                }
            }
            Role::Listener { pending, waiting, kept_out, .. } => {
                for child in pending.into_iter().paced() {
                    child.never_accepted();
                }
                for (asking, attempt) in waiting.into_iter().chain(kept_out).paced() {
                    if let Some(asking) = asking.upgrade() {
                        count_reset(self.family == Family::V6);
                        asking.refuse(attempt);
                    }
                }
            }
            Role::Closed | Role::Connecting => {}
        }
    }

    /// A connection that the listener never accepted.
    fn never_accepted(self: Arc<Self>) {
        let mut state = self.state.lock();
        state.orphan = true;
        state.count_broken();
        let role = core::mem::replace(&mut state.role, Role::Closed);
        let port = state.port.take();
        drop(state);
        drop(port);
        self.abandon(role);
    }

    /// The last file is gone.
    pub(super) fn close_file(&self) {
        let breaks_off = self.options.breaks_off();
        let mut turn = self.turn.lock();
        let mut state = self.state.lock();
        state.orphan = true;
        let unread = state.received.take_all(&mut turn);
        let unheard = state.unheard.take_all();
        let open = matches!(state.role, Role::Connected(_));
        if open && unread.len() == 0 && !breaks_off {
            let waits = !state.fin;
            drop(state);
            drop(unheard);
            self.send_fin();
            let port = self.state.lock().port.take();
            match port {
                Some(port) if waits => port.wait_out(),
                port => drop(port),
            }
            return;
        }
        if open {
            let unread = unread.len() > 0;
            count::tcp(if unread { Tally::AbortsOnClose } else { Tally::AbortsOnData });
        }
        state.count_broken();
        let asked = (state.asked.take(), state.attempt);
        let role = core::mem::replace(&mut state.role, Role::Closed);
        let port = state.port.take();
        drop(state);
        drop((unread, unheard, port));
        self.ask_no_more(asked);
        self.abandon(role);
    }
}
