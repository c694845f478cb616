//! AF_UNIX sockets: streams, datagrams and sequenced packets between processes of one machine.
//!
//! [`Socket`] is one end: its receive queue, its name, its peer. A sender puts messages into the receiver's
//! queue, so each socket owns only its own state. Locks: a mutex for readers of a stream, then `Stream`; a listener is locked before a connection that
//! is or will be in its backlog, and no other two sockets together. Never copies user memory under a lock.

use super::address::Address;
use super::file::SocketFile;
use super::{connect, registry};
use crate::mm::fallible::try_arc;
use crate::net::filter::Slot;
use crate::net::limit::Timeouts;
use crate::net::name::SockName;
use crate::net::peek::PeekOffset;
use crate::net::prepared::Prepared;

use super::queue::Queue;
use super::room::Relay;
use crate::sync::counted::{self, Counted};
use crate::sync::{Mutex, Once, SpinLock, WaitQueue, level};
use crate::vfs::notify::{Listeners, Reason};
use crate::vfs::{Cred, Inode, OpenFile};
use abi::socket::Ucred;
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes in order, between two.
    Stream,
    /// Messages, from anybody.
    Datagram,
    /// Messages in order, between two.
    SeqPacket,
}

impl Kind {
    /// Whether it has to be connected to be used.
    pub fn is_connected_kind(self) -> bool {
        self != Self::Datagram
    }

    /// `SOCK_*`.
    pub fn number(self) -> u32 {
        match self {
            Self::Stream => abi::socket::SOCK_STREAM,
            Self::Datagram => abi::socket::SOCK_DGRAM,
            Self::SeqPacket => abi::socket::SOCK_SEQPACKET,
        }
    }
}

/// One end.
pub struct Socket {
    _counted: Counted,
    pub(super) kind: Kind,
    pub(super) state: SpinLock<State, level::Stream>,
    /// The inode number of its file, for /proc; 0 until it has one. Relaxed: set once, a number alone.
    ino: AtomicU64,
    /// Its open file, once it has one.
    pub(super) file: Once<Weak<OpenFile>>,
    /// SO_RCVLOWAT. Relaxed: a number alone.
    pub(super) low_water: AtomicU32,
    /// Where MSG_PEEK looks.
    pub peek_offset: PeekOffset,
    /// What comes to it passes here; as on Linux, nothing of a stream does.
    pub(super) filter: Slot,
    /// Who reads a stream, or gives the socket a name or a role: one at a time.
    pub(super) turn: Mutex<()>,
    /// Who waits for something to receive or to accept, or for a hang-up.
    pub(super) for_reading: WaitQueue,
    /// Pollers of this socket that wait for room at its peer; the relay wakes them.
    pub(super) for_writing: Arc<WaitQueue>,
    pub(super) relay: Relay,
    /// Who waits for room in this socket's queue: its senders, and the relays of those that poll.
    pub(super) for_room: WaitQueue,
    /// Who is told by signals of what comes, and of room at the peer.
    pub(super) listeners: Listeners,
    /// The peer's listeners wait for room here. Relaxed: set before the sender looks once more, under the lock that who makes room takes.
    pub(super) owes_room: AtomicBool,
}

pub(super) struct State {
    pub(super) name: Address,
    pub(super) role: Role,
    pub(super) queue: Queue,
    /// How many datagrams may wait here before a sender that is not the peer has to wait.
    pub(super) queue_length: u32,
    /// Nothing more is received; nothing more is sent.
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    /// The peer is closed; this socket is.
    pub(super) peer_gone: bool,
    pub(super) is_closed: bool,
    /// What SO_ERROR reports once.
    pub(super) error: Option<Errno>,
    /// Who made the connection, or listens.
    pub(super) cred: Ucred,
    pub(super) peer_cred: Ucred,
    pub(super) buffer: usize,
    pub(super) receive_buffer: usize,
    pub(super) pass_cred: bool,
    pub(super) pass_sec: bool,
    /// SO_OOBINLINE.
    pub(super) oob_inline: bool,
    /// In which form messages tell when they were sent: an option's number.
    pub(super) stamps: Option<i32>,
    pub(super) timeouts: Timeouts,
    /// The inode of the path that this socket is bound to.
    pub(super) bound: Option<Arc<dyn Inode>>,
}

impl State {
    /// Whether it asked for credentials, which only come to who has a name, and has none yet.
    pub(super) fn wants_name(&self) -> bool {
        self.pass_cred && self.name == Address::Unnamed
    }

    /// Whether a sender that is not the peer must wait.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() > self.queue_length as usize
    }

    /// Whether `other` is the socket that this one is connected to.
    pub(super) fn is_peer(&self, other: &Socket) -> bool {
        matches!(&self.role, Role::Connected(peer) if core::ptr::eq(peer.as_ptr(), other))
    }
}

pub(super) enum Role {
    Single,
    Listener {
        backlog: usize,
        pending: VecDeque<Arc<Socket>>,
    },
    /// Weak: the peer lives as long as its own file.
    Connected(Weak<Socket>),
}

impl Socket {
    pub(super) fn new(kind: Kind, cred: Ucred) -> Result<Arc<Self>> {
        let for_writing = try_arc(WaitQueue::new())?;
        let (send, receive) = crate::net::sysctl::new_buffers();
        let socket = try_arc(Self {
            _counted: Counted::new(counted::Kind::UnixSocket),
            kind,
            ino: AtomicU64::new(0),
            file: Once::new(),
            low_water: AtomicU32::new(1),
            peek_offset: PeekOffset::new(),
            filter: Slot::new(),
            state: SpinLock::new(State {
                name: Address::Unnamed,
                role: Role::Single,
                queue: Queue::default(),
                queue_length: crate::net::sysctl::new_queue_length(),
                read_shut: false,
                write_shut: false,
                peer_gone: false,
                is_closed: false,
                error: None,
                cred,
                peer_cred: Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX },
                buffer: send,
                receive_buffer: receive,
                pass_cred: false,
                pass_sec: false,
                oob_inline: false,
                stamps: None,
                timeouts: Timeouts::default(),
                bound: None,
            }),
            turn: Mutex::new(()),
            for_reading: WaitQueue::new(),
            for_writing,
            relay: Relay::new(),
            for_room: WaitQueue::new(),
            listeners: Listeners::new(),
            owes_room: AtomicBool::new(false),
        })?;
        registry::add(&socket)?;
        Ok(socket)
    }

    /// The inode number of its file; 0 while it has none.
    pub(super) fn inode(&self) -> u64 {
        self.ino.load(Ordering::Relaxed)
    }

    /// How it transfers.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its own name.
    pub fn name(&self) -> Address {
        self.state.lock().name.clone()
    }

    /// The peer, while it is there.
    pub fn peer(&self) -> Option<Arc<Socket>> {
        match &self.state.lock().role {
            Role::Connected(peer) => peer.upgrade(),
            _ => None,
        }
    }

    /// The name of the peer: ENOTCONN without one.
    pub fn peer_name(&self) -> Result<Address> {
        Ok(self.peer().ok_or(Errno::ENOTCONN)?.name())
    }

    /// Whether a reader slept.
    pub(super) fn wake_everyone(&self) -> bool {
        let slept = self.for_reading.wakes_any();
        self.for_writing.wake_all();
        self.for_room.wake_all();
        slept
    }

    /// Wakes all; who listens is told, unless it is a stream whose reader was woken.
    pub(super) fn wake_and_tell(&self, reason: Reason) {
        if !self.wake_everyone() || self.kind != Kind::Stream {
            self.listeners.tell(reason);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        registry::remove(self);
    }
}

/// An open file for a socket.
pub fn open(socket: Arc<Socket>, nonblock: bool, cred: &Cred) -> Result<Arc<OpenFile>> {
    Ok(finish(Prepared::new(nonblock, cred)?, socket))
}

/// Takes a connection from its queue, which nothing but its being there can keep from having a file: the file and its peer.
pub fn accept(
    listener: &Socket,
    wait: bool,
    nonblock: bool,
    cred: &Cred,
) -> Result<(Arc<OpenFile>, SockName)> {
    let prepared = Prepared::new(nonblock, cred)?;
    let accepted = listener.accept(!wait)?;
    let peer = accepted.peer_name().unwrap_or(Address::Unnamed).encode();
    Ok((finish(prepared, accepted), peer))
}

fn finish(prepared: Prepared<SocketFile>, socket: Arc<Socket>) -> Arc<OpenFile> {
    // Relaxed: set once, a number alone.
    socket.ino.store(prepared.ino(), Ordering::Relaxed);
    let file = prepared.open(SocketFile(socket.clone()));
    socket.file.call_once(|| Arc::downgrade(&file));
    file
}

/// A new socket on its own.
pub fn create(kind: Kind, cred: Ucred) -> Result<Arc<Socket>> {
    Socket::new(kind, cred)
}

/// Two new sockets, connected.
pub fn pair(kind: Kind, cred: Ucred) -> Result<(Arc<Socket>, Arc<Socket>)> {
    let (a, b) = (Socket::new(kind, cred)?, Socket::new(kind, cred)?);
    connect::join(&a, &b);
    Ok((a, b))
}

/// The socket behind a file: ENOTSOCK if there is none.
pub fn of_file(file: &OpenFile) -> Result<&Arc<Socket>> {
    file.downcast::<SocketFile>().map(|file| &file.0).ok_or(Errno::ENOTSOCK)
}
