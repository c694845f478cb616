//! A new socket of a family, type and protocol, and the file that stands for it.
//!
//! Owns the choice of protocol, and starts `net` as a whole ([`init`]). AF_UNIX sockets are made in `unix`. Locks: none.

use super::addr::Family;
use super::file::NetFile;
use super::name::SockName;
use super::prepared::Prepared;
use super::socket::{NetSocket, Who};
use super::{netlink, proc, raw, sysctl, tcp, udp};
use crate::fs::uevent;
use crate::vfs::{Cred, OpenFile};
use abi::net::{
    AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_IP,
    IPPROTO_IPV6, IPPROTO_MAX, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, ipv6,
};
use abi::socket::{SOCK_DGRAM, SOCK_RAW, SOCK_STREAM};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// A new socket of a family, `SOCK_*` type and protocol.
pub fn create(family: i32, kind: u32, protocol: i32, who: Who) -> Result<Arc<dyn NetSocket>> {
    let family = match u16::try_from(family) {
        Ok(AF_INET) => Family::V4,
        Ok(AF_INET6) => Family::V6,
        Ok(AF_NETLINK) => return netlink::create(kind, protocol, who),
        // There are no packets to capture; a caller without the privilege gets EPERM first.
        Ok(AF_PACKET) if !who.raw => return Err(Errno::EPERM),
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    if !(0..IPPROTO_MAX).contains(&protocol) {
        return Err(Errno::EINVAL);
    }
    let socket = match (kind, protocol) {
        (SOCK_STREAM, IPPROTO_IP | IPPROTO_TCP) => tcp::create(family, who),
        (SOCK_DGRAM, IPPROTO_IP | IPPROTO_UDP) => udp::create(family, IPPROTO_UDP, who),
        (SOCK_DGRAM, IPPROTO_UDPLITE) => udp::create(family, IPPROTO_UDPLITE, who),
        (SOCK_RAW, _) => raw::create(family, protocol, who),
        (SOCK_DGRAM, IPPROTO_ICMP) if family == Family::V4 => raw::create_ping(family, who),
        (SOCK_DGRAM, IPPROTO_ICMPV6) if family == Family::V6 => raw::create_ping(family, who),
        (SOCK_STREAM | SOCK_DGRAM, _) => Err(Errno::EPROTONOSUPPORT),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }?;
    if family == Family::V6 && sysctl::new_is_v6_only() {
        socket.options().keep(IPPROTO_IPV6, ipv6::V6ONLY, 1)?;
    }
    Ok(socket)
}

/// An open file for a socket.
pub fn open(socket: Arc<dyn NetSocket>, nonblock: bool, cred: &Cred) -> Result<Arc<OpenFile>> {
    Ok(finish(Prepared::new(nonblock, cred)?, socket))
}

/// Takes a connection from its queue, which nothing but its being there can keep from having a file: the file and its peer.
pub fn accept(
    listener: &dyn NetSocket,
    wait: bool,
    nonblock: bool,
    cred: &Cred,
) -> Result<(Arc<OpenFile>, Result<SockName>)> {
    let prepared = Prepared::new(nonblock, cred)?;
    let accepted = listener.accept(!wait)?;
    let peer = accepted.peer_name();
    Ok((finish(prepared, accepted), peer))
}

fn finish(prepared: Prepared<NetFile>, socket: Arc<dyn NetSocket>) -> Arc<OpenFile> {
    socket.options().set_inode(prepared.ino());
    let file = prepared.open(NetFile::new(socket.clone()));
    socket.options().set_file(&file);
    file
}

/// Adds the files about networks to /proc and /sys, and lets netlink carry the events of devices.
pub fn init() -> Result<()> {
    uevent::register_carrier(netlink::carry);
    proc::register()
}
