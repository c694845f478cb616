//! Sockets: making, naming, connecting. AF_UNIX lives in `net::unix::unix`, networks in `net`.

use crate::mm::fallible::TrySlice;
use crate::mm::user::{self, UserPtr};
use crate::net::unix::connect::at_inode;
use crate::net::unix::{self, Address, Kind, Socket, address};
use crate::net::{self, NetSocket, SockName, Who};
use crate::process;
use crate::sync::PollTable;
use crate::syscall::caller::{file, with_ctx};
use crate::syscall::file::install::{install_shared, reserved, reserved_pair};
use crate::vfs::namei::{self, LookupFlags, perm};
use crate::vfs::{Capability, DevId, Fd, FileType, OpenFile, PollEvents, ops};
use abi::fs::{AT_FDCWD, OpenFlags, S_IFSOCK};
use abi::socket::{
    AF_UNIX, AF_UNSPEC, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOCK_TYPE_MASK, Ucred,
};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A socket of either kind.
pub enum Any<'a> {
    Unix(&'a Arc<Socket>),
    Net(&'a Arc<dyn NetSocket>),
}

/// The socket behind a file: ENOTSOCK.
pub fn any(file: &OpenFile) -> Result<Any<'_>> {
    match net::of_file(file) {
        Ok(socket) => Ok(Any::Net(socket)),
        Err(_) => unix::of_file(file).map(Any::Unix),
    }
}

/// The caller, as a peer or a receiver sees it.
pub fn caller_cred() -> Ucred {
    let task = process::current();
    let cred = task.cred();
    Ucred { pid: task.process().pid(), uid: cred.euid, gid: cred.egid }
}

/// The caller as the sender of a message: unlike in [`caller_cred`], the real user and group.
pub fn sender() -> Ucred {
    let task = process::current();
    let cred = task.cred();
    Ucred { pid: task.process().pid(), uid: cred.uid, gid: cred.gid }
}

/// The caller, as networks see it.
fn who() -> Who {
    let task = process::current();
    let cred = task.cred();
    Who {
        uid: cred.euid,
        pid: task.process().pid(),
        low_ports: cred.capable(Capability::NET_BIND_SERVICE),
        admin: cred.capable(Capability::NET_ADMIN),
        raw: cred.capable(Capability::NET_RAW),
        pings: net::may_ping(&cred),
    }
}

/// The flags in a socket's type: close-on-exec, non-blocking.
fn type_flags(kind: u32) -> Result<(bool, bool)> {
    let flags = kind & !SOCK_TYPE_MASK;
    if flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() != 0 {
        return Err(Errno::EINVAL);
    }
    Ok((flags & OpenFlags::CLOEXEC.bits() != 0, flags & OpenFlags::NONBLOCK.bits() != 0))
}

fn unix_kind(kind: u32, protocol: i32) -> Result<Kind> {
    if protocol != 0 && protocol != i32::from(AF_UNIX) {
        return Err(Errno::EPROTONOSUPPORT);
    }
    match kind & SOCK_TYPE_MASK {
        SOCK_STREAM => Ok(Kind::Stream),
        SOCK_DGRAM | SOCK_RAW => Ok(Kind::Datagram),
        SOCK_SEQPACKET => Ok(Kind::SeqPacket),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

pub fn socket(family: i32, kind: u32, protocol: i32) -> Result<i32> {
    let (cloexec, _) = type_flags(kind)?;
    Ok(install_shared(make(family, kind, protocol)?, cloexec)?.0)
}

/// A socket without a descriptor.
#[inline]
pub fn make(family: i32, kind: u32, protocol: i32) -> Result<Arc<OpenFile>> {
    let (_, nonblock) = type_flags(kind)?;
    let cred = process::current().cred_arc();
    if family == i32::from(AF_UNIX) {
        let socket = unix::create(unix_kind(kind, protocol)?, caller_cred())?;
        return unix::open(socket, nonblock, &cred);
    }
    let socket = net::create(family, kind & SOCK_TYPE_MASK, protocol, who())?;
    net::open(socket, nonblock, &cred)
}

pub fn socketpair(family: i32, kind: u32, protocol: i32, fds: UserPtr<[i32; 2]>) -> Result<()> {
    let (cloexec, nonblock) = type_flags(kind)?;
    reserved_pair(cloexec, fds, || {
        if family != i32::from(AF_UNIX) {
            // The families of networks exist, but cannot pair.
            net::create(family, kind & SOCK_TYPE_MASK, protocol, who())?;
            return Err(Errno::EOPNOTSUPP);
        }
        let cred = process::current().cred_arc();
        let (a, b) = unix::pair(unix_kind(kind, protocol)?, caller_cred())?;
        Ok((unix::open(a, nonblock, &cred)?, unix::open(b, nonblock, &cred)?))
    })
}

/// A `sockaddr` from user memory.
pub fn read_address(addr: u64, len: u32) -> Result<Vec<u8>> {
    let len = len as usize;
    if len > 128 {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; 128];
    user::read_bytes(addr, &mut bytes[..len])?;
    bytes[..len].try_owned()
}

/// Writes a name where `accept` and its like want it: cut at the caller's length, the true length told.
pub fn write_name(name: &[u8], addr: u64, len: UserPtr<i32>) -> Result<()> {
    if addr == 0 {
        return Ok(());
    }
    let room = usize::try_from(len.read()?).map_err(|_| Errno::EINVAL)?;
    user::write_bytes(addr, &name[..name.len().min(room)])?;
    len.write(&(name.len() as i32))
}

/// The socket with a name.
pub fn find(name: &Address) -> Result<Arc<Socket>> {
    match name {
        Address::Unnamed => Err(Errno::EINVAL),
        Address::Abstract(name) => address::find(name),
        Address::Path(path) => with_ctx(|ctx| {
            let place = namei::lookup(ctx, Fd(AT_FDCWD), path, LookupFlags::FOLLOW)?;
            perm::check(&**place.inode(), ctx.cred, 2)?;
            if place.dentry.kind() != FileType::Socket {
                return Err(Errno::ECONNREFUSED);
            }
            at_inode(place.inode())
        }),
    }
}

pub fn bind(fd: i32, addr: u64, len: u32) -> Result<()> {
    let file = file(fd)?;
    any(&file)?;
    bind_to(&file, &read_address(addr, len)?)
}

/// `bind` of a socket that is found already, to a `sockaddr`.
pub fn bind_to(file: &OpenFile, name: &[u8]) -> Result<()> {
    match any(file)? {
        Any::Unix(socket) => bind_unix(socket, &Address::decode(name)?),
        Any::Net(socket) => socket.bind(name, who()),
    }
}

fn bind_unix(socket: &Arc<Socket>, name: &Address) -> Result<()> {
    let path = match name {
        Address::Unnamed => return socket.bind_any(),
        Address::Abstract(name) => return socket.bind_abstract(name),
        Address::Path(path) => path,
    };
    with_ctx(|ctx| {
        let made = ops::mknod(ctx, Fd(AT_FDCWD), path, S_IFSOCK | 0o777, DevId::NONE);
        made.map_err(|error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error })?;
        let place = namei::lookup(ctx, Fd(AT_FDCWD), path, LookupFlags::empty())?;
        let bound = socket.bind_inode(name, place.inode());
        if bound.is_err() {
            // As on Linux the name goes again. (Somebody else may have taken it away meanwhile.)
            let _ = ops::unlink(ctx, Fd(AT_FDCWD), path);
        }
        bound
    })
}

pub fn listen(fd: i32, backlog: i32) -> Result<()> {
    let file = file(fd)?;
    match any(&file)? {
        Any::Unix(socket) => socket.listen(backlog, caller_cred()),
        Any::Net(socket) => socket.listen(backlog),
    }
}

pub fn connect(fd: i32, addr: u64, len: u32) -> Result<()> {
    connect_of(&*file(fd)?, addr, len)
}

/// `connect` of a socket that is found already.
pub fn connect_of(file: &OpenFile, addr: u64, len: u32) -> Result<()> {
    any(file)?;
    connect_to(file, &read_address(addr, len)?)
}

/// As [`connect_of`], to a `sockaddr`.
pub fn connect_to(file: &OpenFile, name: &[u8]) -> Result<()> {
    match any(file)? {
        Any::Net(socket) => socket.connect(name, file.nonblock()),
        Any::Unix(socket) if name.get(..2) == Some(&AF_UNSPEC.to_ne_bytes()) => socket.disconnect(),
        Any::Unix(socket) => {
            let name = Address::decode(name)?;
            if matches!(name, Address::Unnamed) {
                return Err(Errno::EINVAL);
            }
            // As on Linux, also if nobody is found.
            socket.bind_for_creds()?;
            let target = find(&name)?;
            socket.connect(&target, file.nonblock(), caller_cred())
        }
    }
}

pub fn accept(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<i32> {
    accept4(fd, addr, len, 0)
}

pub fn accept4(fd: i32, addr: u64, len: UserPtr<i32>, flags: u32) -> Result<i32> {
    if flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() != 0 {
        return Err(Errno::EINVAL);
    }
    accept_of(&*file(fd)?, addr, len, flags)
}

/// `accept4` of a socket that is found already.
pub fn accept_of(listener: &OpenFile, addr: u64, len: UserPtr<i32>, flags: u32) -> Result<i32> {
    // Without a descriptor the connection must stay in the queue.
    let cloexec = flags & OpenFlags::CLOEXEC.bits() != 0;
    Ok(reserved(cloexec, |_| accept_file(listener, addr, len, flags))?.0)
}

/// `accept4` without a descriptor. As on Linux, a connection whose peer's name cannot be told is lost.
#[inline]
pub fn accept_file(
    listener: &OpenFile,
    addr: u64,
    len: UserPtr<i32>,
    flags: u32,
) -> Result<Arc<OpenFile>> {
    let cred = process::current().cred_arc();
    let nonblock = flags & OpenFlags::NONBLOCK.bits() != 0;
    let wait = !listener.nonblock();
    let (file, peer) = match any(listener)? {
        Any::Unix(socket) => unix::accept(socket, wait, nonblock, &cred)?,
        Any::Net(socket) => {
            let (file, peer) = net::accept(&**socket, wait, nonblock, &cred)?;
            // A peer that has gone since counts as one that was never there.
            let unasked =
                |_| if addr == 0 { Ok(SockName::default()) } else { Err(Errno::ECONNABORTED) };
            (file, peer.or_else(unasked)?)
        }
    };
    write_name(&peer, addr, len)?;
    Ok(file)
}

/// Whether a connection waits to be accepted.
pub fn has_connection(listener: &OpenFile) -> bool {
    let accepts = match any(listener) {
        Ok(Any::Unix(socket)) => socket.accepts(),
        Ok(Any::Net(socket)) => socket.accepts(),
        Err(_) => false,
    };
    accepts && listener.poll(&mut PollTable::look()).contains(PollEvents::IN)
}

/// What `accept` says of a file that has none.
pub fn no_connection(listener: &OpenFile) -> Errno {
    match any(listener) {
        Err(error) => error,
        Ok(Any::Unix(socket)) if !socket.kind().is_connected_kind() => Errno::EOPNOTSUPP,
        Ok(Any::Net(socket)) if socket.kind() != SOCK_STREAM => Errno::EOPNOTSUPP,
        Ok(Any::Unix(socket)) if !socket.accepts() => Errno::EINVAL,
        Ok(Any::Net(socket)) if !socket.accepts() => Errno::EINVAL,
        Ok(_) => Errno::EAGAIN,
    }
}

pub fn getsockname(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    let name = match any(&file)? {
        Any::Unix(socket) => socket.name().encode(),
        Any::Net(socket) => socket.name(),
    };
    write_name(&name, addr, len)
}

pub fn getpeername(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    let name = match any(&file)? {
        Any::Unix(socket) => socket.peer_name()?.encode(),
        Any::Net(socket) => socket.peer_name()?,
    };
    write_name(&name, addr, len)
}

pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    let file = file(fd)?;
    let socket = any(&file)?;
    let (read, write) = match how {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL),
    };
    match socket {
        Any::Unix(socket) => socket.shut_down(read, write),
        Any::Net(socket) => socket.shut_down(read, write),
    }
}
