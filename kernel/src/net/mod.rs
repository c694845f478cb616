//! Networks of one machine: AF_INET, AF_INET6 and AF_NETLINK over a loopback, the only interface.
//!
//! There are no packets: what one socket sends goes straight into the queue of the other, and what a
//! protocol would find out by asking the other end is looked up (docs/decisions/0004). [`NetSocket`] is what
//! the system calls see. Locks: each socket's state is a `Stream`; a listener's is taken before that of a
//! connection, and two connections are never locked together; the table of ports is a `Leaf`. No lock is
//! held while user memory is copied, but the sleeping one that gives readers their turns.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]
#![forbid(unsafe_code)]

pub mod addr;
mod bind;
mod control;
pub mod device;
mod file;
mod inbox;
mod netlink;
pub mod option;
mod options;
mod ports;
mod proc;
mod raw;
mod tcp;
mod udp;

use crate::mm::fallible::try_arc;
pub use addr::Family;
pub use file::of_file;
pub use option::Options;
pub use ports::forget_waiting;

use crate::fs::anon::{AnonFs, new_path};
use crate::fs::inode::Owner;
use crate::fs::{Cred, OpenFile, PollEvents};
use crate::mm::iov::{Sink, Source};
use crate::sync::PollTable;
use abi::fs::{OpenFlags, S_IFSOCK};
use abi::net::{
    AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_IP,
    IPPROTO_MAX, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE,
};
use abi::socket::{MsgFlags, SOCK_DGRAM, SOCK_RAW, SOCK_STREAM};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Who makes a call, as far as networks care.
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
}

/// One piece of control data.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub from: Option<Vec<u8>>,
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
    fn accept(&self, _nonblock: bool) -> Result<Arc<dyn NetSocket>> {
        Err(Errno::EOPNOTSUPP)
    }
    fn shut_down(&self, read: bool, write: bool) -> Result<()>;
    fn name(&self) -> Result<Vec<u8>>;
    fn peer_name(&self) -> Result<Vec<u8>>;
    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize>;
    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming>;
    /// SO_ERROR: reports an error once.
    fn take_error(&self) -> Option<Errno>;
    /// SO_ACCEPTCONN.
    fn accepts(&self) -> bool {
        false
    }
    /// `setsockopt` of another level than `SOL_SOCKET`, and what the protocol has to know of that.
    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()>;
    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>>;
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

/// A new socket of a family, `SOCK_*` type and protocol.
pub fn create(family: i32, kind: u32, protocol: i32, who: Who) -> Result<Arc<dyn NetSocket>> {
    let family = match u16::try_from(family) {
        Ok(AF_INET) => Family::V4,
        Ok(AF_INET6) => Family::V6,
        Ok(AF_NETLINK) => return netlink::create(kind, protocol, who),
        // There are no packets to capture, but who may not is told so first.
        Ok(AF_PACKET) if !who.raw => return Err(Errno::EPERM),
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    if !(0..IPPROTO_MAX).contains(&protocol) {
        return Err(Errno::EINVAL);
    }
    match (kind, protocol) {
        (SOCK_STREAM, IPPROTO_IP | IPPROTO_TCP) => tcp::create(family, who),
        (SOCK_DGRAM, IPPROTO_IP | IPPROTO_UDP) => udp::create(family, IPPROTO_UDP, who),
        (SOCK_DGRAM, IPPROTO_UDPLITE) => udp::create(family, IPPROTO_UDPLITE, who),
        (SOCK_RAW, _) => raw::create(family, protocol, who),
        // No group may send echo requests without privilege (net.ipv4.ping_group_range).
        (SOCK_DGRAM, IPPROTO_ICMP) if family == Family::V4 => Err(Errno::EACCES),
        (SOCK_DGRAM, IPPROTO_ICMPV6) if family == Family::V6 => Err(Errno::EACCES),
        (SOCK_STREAM | SOCK_DGRAM, _) => Err(Errno::EPROTONOSUPPORT),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

/// An open file for a socket.
pub fn open(socket: Arc<dyn NetSocket>, nonblock: bool, cred: &Arc<Cred>) -> Result<OpenFile> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
    let path = new_path(AnonFs::Socket, S_IFSOCK | 0o777, "", owner)?;
    socket.options().set_inode(path.dentry.inode().attr().ino());
    let mut flags = OpenFlags::RDWR;
    flags.set(OpenFlags::NONBLOCK, nonblock);
    Ok(OpenFile::new(try_arc(file::NetFile::new(socket))?, path, flags, cred.clone()))
}

/// Puts the files of networks into /proc and /sys.
pub fn init() -> Result<()> {
    proc::register()
}

// Relaxed, both: statistics.
static BYTES: AtomicU64 = AtomicU64::new(0);
static PACKETS: AtomicU64 = AtomicU64::new(0);

/// Bytes and messages that went over the loopback.
fn traffic() -> (u64, u64) {
    (BYTES.load(Ordering::Relaxed), PACKETS.load(Ordering::Relaxed))
}

/// Copies `len` bytes of user memory, which will go over the loopback.
fn copy_in(src: &mut Source<'_>, len: usize) -> Result<Vec<u8>> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOBUFS);
    }
    let bytes = src.take_vec(len)?;
    BYTES.fetch_add(len as u64, Ordering::Relaxed);
    PACKETS.fetch_add(1, Ordering::Relaxed);
    Ok(bytes)
}
