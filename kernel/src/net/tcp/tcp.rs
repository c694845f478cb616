//! TCP between two sockets of this machine: [`Tcp`] is one end, listening, connecting or connected.
//!
//! Each end owns what it has received; its peer puts bytes there, up to about the sum of the peer's send buffer
//! (of which at most 256 KiB count) and the own receive buffer. States, errors and events are those that Linux's
//! sockets show over its loopback. Locks: `Stream`. A listener is locked before the socket that connects to it, and
//! that one before the new connection, which only the table of ports knows yet; no other two sockets are locked together. User
//! memory is never copied under a spinlock; a mutex keeps the reads of one end apart, and them from its end.

use super::bytes::{Bytes, Turn, Unheard};
use crate::mm::fallible::try_arc_cyclic;
use crate::mm::{Sink, Source};
use crate::net::addr::{Family, encode};
use crate::net::inbox::report::Sends;
use crate::net::name::SockName;
use crate::net::option::Options;
use crate::net::peek::PeekOffset;
use crate::net::ports::Port;
use crate::net::socket::{Incoming, NetSocket, Outgoing, Who};
use crate::net::sysctl::tcp as sizes;
use crate::sync::{Mutex, PollTable, SpinGuard, SpinLock, WaitQueue, level};
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use abi::net::{IPPROTO_TCP, TcpState};
use abi::socket::{MsgFlags, SOCK_STREAM};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::SocketAddr;

/// What a connection's send buffer grows to by itself.
pub(super) const GROWN_SEND_BUFFER: usize = 2_626_560;

/// One end.
pub struct Tcp {
    pub(super) me: Weak<Tcp>,
    pub(super) family: Family,
    pub(super) uid: u32,
    pub(super) options: Options,
    pub(super) state: SpinLock<State, level::Stream>,
    /// Readers take turns, so that bytes keep their order; who ends the connection does so between two of them, as on Linux.
    /// Before the own state.
    pub(super) turn: Mutex<Turn>,
    /// Who waits for something to receive or to accept, or for the end of the connection.
    pub(super) for_reading: WaitQueue,
    /// Who waits to be connected, or for room in the peer's queue.
    pub(super) for_writing: WaitQueue,
    /// Those with MSG_ZEROCOPY.
    pub(super) sends: Sends,
    pub(super) peek_offset: PeekOffset,
}

/// The locked state of an end.
pub(super) type Guard<'a> = SpinGuard<'a, State, level::Stream>;

pub(super) struct State {
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) port: Option<Port>,
    /// The port was asked for by number: it survives a disconnect.
    pub(super) port_chosen: bool,
    /// The address was given to `bind`: it survives a disconnect too.
    pub(super) addr_chosen: bool,
    pub(super) role: Role,
    pub(super) received: Bytes,
    pub(super) unheard: Unheard,
    /// A byte sent with MSG_OOB that waits to be read.
    pub(super) urgent: Option<u8>,
    /// What SO_ERROR reports once.
    pub(super) error: Option<Errno>,
    /// `shutdown`, or the end of the connection.
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    /// The peer sends no more.
    pub(super) fin: bool,
    /// The listener that has it in one of its lists, for the attempt that goes on.
    pub(super) asked: Option<Weak<Tcp>>,
    /// How often it has begun to connect: what came of an attempt that is over is not for the next one.
    pub(super) attempt: u64,
    /// How often it was disconnected: who reads or writes goes on with no other connection than that which he began with.
    pub(super) disconnects: u64,
    /// `connect` has been called and has not reported its outcome.
    pub(super) connecting: bool,
    /// `connect` has told of a connection, or it was there to be accepted: even once that has been broken off the socket is its own,
    /// until it is disconnected.
    pub(super) joined: bool,
    /// A writer found no room: it is to be woken when there is some.
    pub(super) no_space: bool,
    /// No file has it any more.
    pub(super) orphan: bool,
}

/// Who asks a listener for a connection, with which attempt.
pub(super) type Asking = (Weak<Tcp>, u64);

pub(super) enum Role {
    Closed,
    Listener {
        backlog: usize,
        pending: VecDeque<Arc<Tcp>>,
        /// Who found the backlog full.
        waiting: VecDeque<Asking>,
        /// Who found a filter in the way: nothing but another filter changes that.
        kept_out: VecDeque<Asking>,
    },
    Connecting,
    /// Weak: the peer lives as long as its own file.
    Connected(Weak<Tcp>),
}

impl State {
    /// The state by TCP's name for it.
    pub(super) fn name(&self) -> TcpState {
        match &self.role {
            Role::Closed => TcpState::Close,
            Role::Listener { .. } => TcpState::Listen,
            Role::Connecting => TcpState::SynSent,
            Role::Connected(_) => match (self.write_shut, self.fin) {
                (false, false) => TcpState::Established,
                (true, false) => TcpState::FinWait2,
                (false, true) => TcpState::CloseWait,
                (true, true) => TcpState::Close,
            },
        }
    }

    /// Whether it waits for what comes of this attempt to connect.
    pub(super) fn is_asking(&self, attempt: u64) -> bool {
        matches!(self.role, Role::Connecting) && self.attempt == attempt
    }

    /// Whether there is a connection, which may be over in both directions.
    pub(super) fn has_peer(&self) -> bool {
        matches!(self.role, Role::Connected(_))
    }

    /// Whether it may listen, or connect.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.role, Role::Closed) && !self.joined
    }

    /// Whether the connection is the one with `peer`: what that one sends, its end too, is for no other, which may have been begun
    /// since.
    pub(super) fn is_connected_to(&self, peer: &Weak<Tcp>) -> bool {
        matches!(&self.role, Role::Connected(own) if own.ptr_eq(peer))
    }

    /// Bytes that the peer has sent and nobody has read.
    pub(super) fn held(&self) -> usize {
        self.received.len() + self.unheard.bytes.len()
    }

    pub(super) fn no_more_input(&self) -> bool {
        self.read_shut || self.fin
    }
}

/// A new socket.
pub fn create(family: Family, who: Who) -> Result<Arc<dyn NetSocket>> {
    Ok(Tcp::new(family, who.uid, Options::new(sizes::SEND.first(), sizes::RECEIVE.first()))?)
}

impl Tcp {
    pub(super) fn new(family: Family, uid: u32, options: Options) -> Result<Arc<Self>> {
        try_arc_cyclic(|me| Self {
            me: me.clone(),
            family,
            uid,
            options,
            state: SpinLock::new(State {
                local: family.nowhere(),
                peer: None,
                port: None,
                port_chosen: false,
                addr_chosen: false,
                role: Role::Closed,
                received: Bytes::new(),
                unheard: Unheard::new(),
                urgent: None,
                error: None,
                read_shut: false,
                write_shut: false,
                fin: false,
                asked: None,
                attempt: 0,
                disconnects: 0,
                connecting: false,
                joined: false,
                no_space: false,
                orphan: false,
            }),
            turn: Mutex::new(Turn::new()),
            for_reading: WaitQueue::new(),
            for_writing: WaitQueue::new(),
            sends: Sends::default(),
            peek_offset: PeekOffset::new(),
        })
    }

    pub(super) fn connected_peer(&self) -> Option<Arc<Tcp>> {
        match &self.state.lock().role {
            Role::Connected(peer) => peer.upgrade(),
            _ => None,
        }
    }

    /// Whether a reader slept.
    pub(super) fn wake_everyone(&self) -> bool {
        let slept = self.for_reading.wakes_any();
        self.for_writing.wake_all();
        slept
    }

    /// The connection is there.
    pub(super) fn tell_connected(&self) {
        self.wake_everyone();
        self.options.listeners.tell(Reason::Out);
    }

    /// There is something to read: who sleeps is woken, else who listens is told.
    pub(super) fn tell_readable(&self, more: PollEvents) {
        if !self.for_reading.wake_events((PollEvents::READABLE | more).bits()) {
            self.options.listeners.tell(Reason::In);
        }
    }

    /// For /proc: state, bytes to be read (or connections to be accepted), bytes the peer has not read.
    pub fn summary(&self) -> (TcpState, usize, usize) {
        let unsent = self.unsent();
        let state = self.state.lock();
        match &state.role {
            Role::Listener { pending, .. } => (state.name(), pending.len(), 0),
            _ => (state.name(), state.received.len(), unsent),
        }
    }

    /// What of the peer's queue would, on Linux, still wait on this side.
    fn unsent(&self) -> usize {
        let Some(peer) = self.connected_peer() else { return 0 };
        let held = peer.state.lock().held();
        held.saturating_sub(peer.options.receive_buffer())
    }
}

impl NetSocket for Tcp {
    fn peek_offset(&self) -> Option<&PeekOffset> {
        Some(&self.peek_offset)
    }
    fn domain(&self) -> u16 {
        self.family.number()
    }
    fn kind(&self) -> u32 {
        SOCK_STREAM
    }
    fn protocol(&self) -> i32 {
        IPPROTO_TCP
    }
    fn options(&self) -> &Options {
        &self.options
    }
    fn bind(&self, name: &[u8], who: Who) -> Result<()> {
        self.bind_to(name, who)
    }
    fn connect(&self, name: &[u8], nonblock: bool) -> Result<()> {
        self.connect_to(name, nonblock)
    }
    fn listen(&self, backlog: i32) -> Result<()> {
        self.begin_listening(backlog)
    }
    fn accept(&self, nonblock: bool) -> Result<Arc<dyn NetSocket>> {
        Ok(self.accept_next(nonblock)?)
    }
    fn shut_down(&self, read: bool, write: bool) -> Result<()> {
        self.shut(read, write)
    }
    fn name(&self) -> SockName {
        encode(self.family, self.state.lock().local)
    }
    fn peer_name(&self) -> Result<SockName> {
        let state = self.state.lock();
        match (state.name(), state.peer) {
            (TcpState::Close | TcpState::SynSent | TcpState::Listen, _) | (_, None) => {
                Err(Errno::ENOTCONN)
            }
            (_, Some(peer)) => Ok(encode(self.family, peer)),
        }
    }
    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        self.send_bytes(src, how)
    }
    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming> {
        self.receive_bytes(dst, flags, nonblock)
    }
    fn take_error(&self) -> Option<Errno> {
        self.state.lock().error.take()
    }
    fn accepts(&self) -> bool {
        matches!(self.state.lock().role, Role::Listener { .. })
    }
    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        self.set(level, option, value)
    }
    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        self.get(level, option, room)
    }
    fn filter_changed(&self) {
        self.look_again();
    }
    fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_reading);
        table.watch(&self.for_writing);
        self.events()
    }
    fn note_uncopied(&self) {
        self.sends.add();
        self.for_reading.wake_all();
        self.options.listeners.tell(Reason::Error);
    }
    fn readable_bytes(&self) -> Result<usize> {
        let state = self.state.lock();
        match state.role {
            Role::Listener { .. } => Err(Errno::EINVAL),
            _ => Ok(state.received.len()),
        }
    }
    fn unsent_bytes(&self) -> Result<usize> {
        if self.accepts() { Err(Errno::EINVAL) } else { Ok(self.unsent()) }
    }
    fn at_mark(&self) -> Result<bool> {
        let state = self.state.lock();
        Ok(state.urgent.is_some() && state.received.len() == 0)
    }
    fn close(&self) {
        self.close_file();
    }
}

impl Tcp {
    fn events(&self) -> PollEvents {
        // This locks the peer, so it comes before the own lock is taken. Who finds no room says so and looks again: the reader
        // looks at that after it has made room, so one of the two sees the other.
        let writable = self.room_is_worth_it() || {
            self.state.lock().no_space = true;
            self.options.listeners.lack_room();
            self.room_is_worth_it()
        };
        let state = self.state.lock();
        let mut ready = PollEvents::empty();
        if let Role::Listener { pending, .. } = &state.role {
            return if pending.is_empty() { ready } else { PollEvents::READABLE };
        }
        let name = state.name();
        if name == TcpState::Close || (state.no_more_input() && state.write_shut) {
            ready |= PollEvents::HUP;
        }
        if state.no_more_input() {
            ready |= PollEvents::READABLE | PollEvents::RDHUP;
        }
        if name != TcpState::SynSent {
            // Who reads what the filter may yet let through takes it.
            if state.received.len() >= self.options.low_water() || state.unheard.has_more() {
                ready |= PollEvents::READABLE;
            }
            if state.write_shut || writable {
                ready |= PollEvents::WRITABLE;
            }
            if state.urgent.is_some() {
                ready |= PollEvents::PRI;
            }
        }
        if state.error.is_some() || self.sends.has_notice() {
            ready |= PollEvents::ERR;
        }
        ready
    }
}
