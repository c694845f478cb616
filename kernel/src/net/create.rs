//! A new socket of a family, type and protocol, and the file that stands for it.
//!
//! Owns the choice of protocol, and starts `net` as a whole ([`init`]). AF_UNIX sockets are made in `unix`. Locks: none.

use super::addr::Family;
use super::socket::{NetSocket, Who};
use super::{file, netlink, proc, raw, sysctl, tcp, udp};
use crate::fs::uevent;
use crate::mm::fallible::try_arc;
use crate::vfs::admission::Admission;
use crate::vfs::anon::{AnonFs, new_path};
use crate::vfs::{Cred, OpenFile, Owner};
use abi::fs::{OpenFlags, S_IFSOCK};
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
pub fn open(
    admission: Admission,
    socket: Arc<dyn NetSocket>,
    nonblock: bool,
    cred: &Arc<Cred>,
) -> Result<OpenFile> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
    let path = new_path(AnonFs::Socket, S_IFSOCK | 0o777, "", owner)?;
    socket.options().set_inode(path.dentry.inode().attr().ino());
    let mut flags = OpenFlags::RDWR;
    flags.set(OpenFlags::NONBLOCK, nonblock);
    Ok(OpenFile::new(admission, try_arc(file::NetFile::new(socket))?, path, flags))
}

/// Adds the files about networks to /proc and /sys, and lets netlink carry the events of devices.
pub fn init() -> Result<()> {
    uevent::register_carrier(netlink::carry);
    proc::register()
}
