//! [`NetSocket`]: a socket of a network as the system calls see it, and what goes in and out of it.
//!
//! No protocol may hold a spinlock while user memory is copied. Locks: none here;
//! each protocol names its own.

use super::name::SockName;
use super::option::Options;
use crate::mm::{Sink, Source};
use crate::net::peek::PeekOffset;
use crate::sync::PollTable;
use crate::vfs::PollEvents;
use abi::socket::MsgFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// The caller of a socket operation.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub uid: u32,
    pub pid: i32,
    /// CAP_NET_BIND_SERVICE.
    pub low_ports: bool,
    /// CAP_NET_ADMIN.
    pub admin: bool,
    /// CAP_NET_RAW.
    pub raw: bool,
    /// In a group that may send echo requests.
    pub pings: bool,
}

/// One piece of control data.
#[derive(Debug, PartialEq, Eq)]
pub struct Control {
    pub level: i32,
    pub kind: i32,
    pub data: Vec<u8>,
}

/// How to send.
pub struct Outgoing<'a> {
    pub to: Option<&'a [u8]>,
    pub control: &'a [Control],
    pub flags: MsgFlags,
    pub nonblock: bool,
}

/// What was received, beside the bytes.
#[derive(Default)]
pub struct Incoming {
    /// Bytes that were stored.
    pub bytes: usize,
    /// Bytes the message had.
    pub full: usize,
    /// It was looked at from another place than its beginning, to its end: it is not cut.
    pub to_end: bool,
    pub from: Option<SockName>,
    pub control: Vec<Control>,
    pub flags: MsgFlags,
}

/// A socket of one of the families here. Names are the bytes of a `sockaddr`.
pub trait NetSocket: Send + Sync {
    /// `AF_*`.
    fn domain(&self) -> u16;
    /// `SOCK_*`.
    fn kind(&self) -> u32;
    /// `IPPROTO_*` or its like.
    fn protocol(&self) -> i32;
    /// What `setsockopt` has set.
    fn options(&self) -> &Options;
    fn bind(&self, name: &[u8], who: Who) -> Result<()>;
    fn connect(&self, name: &[u8], nonblock: bool) -> Result<()>;
    fn listen(&self, _backlog: i32) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Fails only before it takes a connection.
    fn accept(&self, _nonblock: bool) -> Result<Arc<dyn NetSocket>> {
        Err(Errno::EOPNOTSUPP)
    }
    fn shut_down(&self, read: bool, write: bool) -> Result<()>;
    fn name(&self) -> SockName;
    fn peer_name(&self) -> Result<SockName>;
    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize>;
    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming>;
    /// The socket as its concrete type, where somebody else must have that.
    fn concrete(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
    /// Where MSG_PEEK looks, for those that can be told.
    fn peek_offset(&self) -> Option<&PeekOffset> {
        None
    }
    /// A stream: a send with MSG_ZEROCOPY has its bytes no longer, of which the sender is to be told. Of datagrams, who sends them
    /// sees to that himself: several calls may make one.
    fn note_uncopied(&self) {}
    /// SO_ERROR: reports an error once.
    fn take_error(&self) -> Option<Errno>;
    /// SO_ACCEPTCONN.
    fn accepts(&self) -> bool {
        false
    }
    /// `setsockopt` of another level than `SOL_SOCKET`, and what the protocol has to know of that.
    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()>;
    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>>;
    /// The filter in the options is another one.
    fn filter_changed(&self) {}
    fn poll(&self, table: &mut PollTable) -> PollEvents;
    /// FIONREAD and TIOCOUTQ.
    fn readable_bytes(&self) -> Result<usize>;
    fn unsent_bytes(&self) -> Result<usize> {
        Ok(0)
    }
    /// SIOCATMARK: whether the reader is where urgent data were sent.
    fn at_mark(&self) -> Result<bool> {
        Err(Errno::ENOTTY)
    }
    /// The last file is gone.
    fn close(&self);
}

/// Copies `len` bytes of user memory, which will go to another socket.
pub(super) fn copy_in(src: &mut Source<'_>, len: usize) -> Result<Vec<u8>> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOBUFS);
    }
    src.take_vec(len)
}
