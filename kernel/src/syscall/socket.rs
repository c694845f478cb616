//! Sockets: the calls of `fs::socket`. AF_UNIX is the only family.

use super::caller::{file, with_ctx};
use super::message::{Name, receive_message, send_message};
use super::pipe::{install, install_pair};
use crate::fs::namei::{self, LookupFlags, perm};
use crate::fs::socket::connect::at_inode;
use crate::fs::socket::{self, Address, Kind, Socket, Timeouts, address, of_file};
use crate::fs::{DevId, Fd, FileType, OpenFile, ops};
use crate::mm::user;
use crate::mm::user::UserPtr;
use crate::process;
use abi::fs::{AT_FDCWD, OpenFlags, S_IFSOCK};
use abi::socket::{
    AF_UNIX, AF_UNSPEC, Linger, MmsgHdr, MsgFlags, MsgHdr, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET,
    SOCK_STREAM, SOCK_TYPE_MASK, SOL_SOCKET, Ucred, so,
};
use abi::time::{Timespec, Timeval};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The caller, as a peer or a receiver sees it.
pub fn caller_cred() -> Ucred {
    let task = process::current();
    let cred = task.cred();
    Ucred { pid: task.process().pid(), uid: cred.euid, gid: cred.egid }
}

struct Request {
    kind: Kind,
    cloexec: bool,
    nonblock: bool,
}

fn request(family: i32, kind: u32, protocol: i32) -> Result<Request> {
    let flags = kind & !SOCK_TYPE_MASK;
    if flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() != 0 {
        return Err(Errno::EINVAL);
    }
    if family != i32::from(AF_UNIX) {
        return Err(Errno::EAFNOSUPPORT);
    }
    if protocol != 0 && protocol != i32::from(AF_UNIX) {
        return Err(Errno::EPROTONOSUPPORT);
    }
    let kind = match kind & SOCK_TYPE_MASK {
        SOCK_STREAM => Kind::Stream,
        SOCK_DGRAM | SOCK_RAW => Kind::Datagram,
        SOCK_SEQPACKET => Kind::SeqPacket,
        _ => return Err(Errno::ESOCKTNOSUPPORT),
    };
    Ok(Request {
        kind,
        cloexec: flags & OpenFlags::CLOEXEC.bits() != 0,
        nonblock: flags & OpenFlags::NONBLOCK.bits() != 0,
    })
}

pub fn socket(family: i32, kind: u32, protocol: i32) -> Result<i32> {
    let asked = request(family, kind, protocol)?;
    let cred = process::current().cred_arc();
    let socket = socket::create(asked.kind, caller_cred());
    Ok(install(socket::open(socket, asked.nonblock, &cred)?, asked.cloexec)?.0)
}

pub fn socketpair(family: i32, kind: u32, protocol: i32, fds: UserPtr<[i32; 2]>) -> Result<()> {
    let asked = request(family, kind, protocol)?;
    let cred = process::current().cred_arc();
    let (a, b) = socket::pair(asked.kind, caller_cred());
    let a = socket::open(a, asked.nonblock, &cred)?;
    let b = socket::open(b, asked.nonblock, &cred)?;
    install_pair(a, b, asked.cloexec, fds)
}

/// A `sockaddr` from user memory.
pub fn read_address(addr: u64, len: u32) -> Result<Vec<u8>> {
    let len = len as usize;
    if len > 128 {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; 128];
    user::read_bytes(addr, &mut bytes[..len])?;
    Ok(bytes[..len].to_vec())
}

/// Writes a name where `accept` and its like want it: cut at the caller's length, the true length told.
pub fn write_address(name: &Address, addr: u64, len: UserPtr<i32>) -> Result<()> {
    if addr == 0 {
        return Ok(());
    }
    let room = usize::try_from(len.read()?).map_err(|_| Errno::EINVAL)?;
    let bytes = name.encode();
    user::write_bytes(addr, &bytes[..bytes.len().min(room)])?;
    len.write(&(bytes.len() as i32))
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
    let socket = of_file(&file)?;
    let name = Address::decode(&read_address(addr, len)?)?;
    let Address::Path(path) = &name else { return socket.bind_abstract(&name) };
    socket.check_unbound()?;
    with_ctx(|ctx| {
        let made = ops::mknod(ctx, Fd(AT_FDCWD), path, S_IFSOCK | 0o777, DevId::NONE);
        made.map_err(|error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error })?;
        let place = namei::lookup(ctx, Fd(AT_FDCWD), path, LookupFlags::empty())?;
        socket.bind_inode(&name, place.inode())
    })
}

pub fn listen(fd: i32, backlog: i32) -> Result<()> {
    let file = file(fd)?;
    of_file(&file)?.listen(backlog, caller_cred())
}

pub fn connect(fd: i32, addr: u64, len: u32) -> Result<()> {
    let file = file(fd)?;
    let socket = of_file(&file)?;
    let bytes = read_address(addr, len)?;
    if bytes.get(..2) == Some(&AF_UNSPEC.to_ne_bytes()) {
        return socket.disconnect();
    }
    let target = find(&Address::decode(&bytes)?)?;
    socket.connect(&target, file.nonblock(), caller_cred())
}

pub fn accept(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<i32> {
    accept4(fd, addr, len, 0)
}

pub fn accept4(fd: i32, addr: u64, len: UserPtr<i32>, flags: u32) -> Result<i32> {
    if flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() != 0 {
        return Err(Errno::EINVAL);
    }
    let listener = file(fd)?;
    let accepted = of_file(&listener)?.accept(listener.nonblock())?;
    let cred = process::current().cred_arc();
    let nonblock = flags & OpenFlags::NONBLOCK.bits() != 0;
    let file = socket::open(accepted, nonblock, &cred)?;
    let peer = of_file(&file)?.peer_name().unwrap_or(Address::Unnamed);
    write_address(&peer, addr, len)?;
    Ok(install(file, flags & OpenFlags::CLOEXEC.bits() != 0)?.0)
}

pub fn getsockname(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    write_address(&of_file(&file)?.name(), addr, len)
}

pub fn getpeername(fd: i32, addr: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    write_address(&of_file(&file)?.peer_name()?, addr, len)
}

pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    let file = file(fd)?;
    let socket = of_file(&file)?;
    match how {
        0 => socket.shut_down(true, false),
        1 => socket.shut_down(false, true),
        2 => socket.shut_down(true, true),
        _ => Err(Errno::EINVAL),
    }
}

pub fn sendto(
    fd: i32,
    buf: u64,
    len: usize,
    flags: u32,
    addr: u64,
    addr_len: u32,
) -> Result<usize> {
    let file = file(fd)?;
    let iov = [user::UserSlice::new(buf, len)];
    let name = if addr == 0 { Name::NONE } else { Name { addr, len: addr_len } };
    send_message(&file, &iov, name, (0, 0), MsgFlags::from_bits_retain(flags))
}

pub fn recvfrom(
    fd: i32,
    buf: u64,
    len: usize,
    flags: u32,
    addr: u64,
    addr_len: UserPtr<i32>,
) -> Result<usize> {
    let file = file(fd)?;
    let iov = [user::UserSlice::new(buf, len)];
    let got = receive_message(&file, &iov, (0, 0), MsgFlags::from_bits_retain(flags))?;
    if let Some(from) = &got.from {
        write_address(from, addr, addr_len)?;
    } else if addr != 0 {
        addr_len.write(&0)?;
    }
    Ok(got.bytes)
}

pub fn sendmsg(fd: i32, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    send_header(&file, &msg.read()?, flags)
}

fn send_header(file: &OpenFile, header: &MsgHdr, flags: u32) -> Result<usize> {
    let iov = crate::mm::iov::import_iovec(header.iov, header.iovlen as usize)?;
    let name = match header.name {
        0 => Name::NONE,
        addr => Name { addr, len: header.namelen },
    };
    let control = (header.control, header.controllen as usize);
    send_message(file, &iov, name, control, MsgFlags::from_bits_retain(flags))
}

pub fn recvmsg(fd: i32, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    receive_header(&file, msg, flags)
}

fn receive_header(file: &OpenFile, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let mut header = msg.read()?;
    let iov = crate::mm::iov::import_iovec(header.iov, header.iovlen as usize)?;
    let control = (header.control, header.controllen as usize);
    let got = receive_message(file, &iov, control, MsgFlags::from_bits_retain(flags))?;
    if header.name != 0 {
        let bytes = got.from.as_ref().map(Address::encode).unwrap_or_default();
        let room = (header.namelen as usize).min(bytes.len());
        user::write_bytes(header.name, &bytes[..room])?;
        header.namelen = bytes.len() as u32;
    }
    header.flags = got.flags.bits();
    header.controllen = got.control_len as u64;
    msg.write(&header)?;
    Ok(got.bytes)
}

/// Linux's `UIO_MAXIOV` bounds these two as well.
const MAX_MESSAGES: u32 = 1024;

pub fn sendmmsg(fd: i32, msgs: UserPtr<MmsgHdr>, count: u32, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    of_file(&file)?;
    let mut done = 0;
    for i in 0..count.min(MAX_MESSAGES) {
        let at = msgs.index(u64::from(i));
        let sent = at.read().and_then(|mut message| {
            message.len = send_header(&file, &message.hdr, flags)? as u32;
            at.write(&message)
        });
        match sent {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

pub fn recvmmsg(
    fd: i32,
    msgs: UserPtr<MmsgHdr>,
    count: u32,
    flags: u32,
    timeout: UserPtr<Timespec>,
) -> Result<usize> {
    let deadline = super::time::read_timeout(timeout)?;
    let file = file(fd)?;
    of_file(&file)?;
    let mut flags = MsgFlags::from_bits_retain(flags);
    let mut done = 0;
    for i in 0..count.min(MAX_MESSAGES) {
        let at = msgs.index(u64::from(i));
        match receive_header(&file, at.cast(), (flags - MsgFlags::WAITFORONE).bits()) {
            Ok(bytes) => {
                let offset = core::mem::offset_of!(MmsgHdr, len) as u64;
                UserPtr::new(at.addr().wrapping_add(offset)).write(&(bytes as u32))?;
                done += 1;
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        if flags.contains(MsgFlags::WAITFORONE) {
            flags |= MsgFlags::DONTWAIT;
        }
        // As on Linux, the limit is only looked at between messages.
        if deadline.is_some_and(|at| at <= crate::time::since_boot_ns()) {
            break;
        }
    }
    Ok(done)
}

pub fn setsockopt(fd: i32, level: i32, option: i32, value: u64, len: i32) -> Result<()> {
    let file = file(fd)?;
    let socket = of_file(&file)?;
    if level != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = || {
        if len < 4 { Err(Errno::EINVAL) } else { UserPtr::<i32>::new(value).read() }
    };
    match option {
        so::PASSCRED => socket.set_pass_cred(number()? != 0),
        so::SNDBUF | so::RCVBUF | so::SNDBUFFORCE | so::RCVBUFFORCE => {
            socket.set_buffer(u32::try_from(number()?).unwrap_or(u32::MAX));
        }
        so::RCVTIMEO | so::SNDTIMEO => {
            if len < size_of::<Timeval>() as i32 {
                return Err(Errno::EINVAL);
            }
            let limit = UserPtr::<Timeval>::new(value).read()?.to_nanos().ok_or(Errno::EDOM)?;
            let mut timeouts: Timeouts = socket.timeouts();
            match option {
                so::RCVTIMEO => timeouts.receive = limit,
                _ => timeouts.send = limit,
            }
            socket.set_timeouts(timeouts);
        }
        // Settings that make no difference to a local socket, on Linux either.
        so::REUSEADDR | so::BROADCAST | so::KEEPALIVE => drop(number()?),
        so::LINGER => drop(UserPtr::<Linger>::new(value).read()?),
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

pub fn getsockopt(fd: i32, level: i32, option: i32, value: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    let socket = of_file(&file)?;
    let room = usize::try_from(len.read()?).map_err(|_| Errno::EINVAL)?;
    if level != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = |n: i32| n.to_ne_bytes().to_vec();
    let limit = |nanos: u64| {
        let time = Timeval::from_nanos(nanos);
        [time.sec.to_ne_bytes(), time.usec.to_ne_bytes()].concat()
    };
    let bytes = match option {
        so::TYPE => number(socket.kind().number() as i32),
        so::DOMAIN => number(i32::from(AF_UNIX)),
        so::PROTOCOL | so::REUSEADDR | so::BROADCAST | so::KEEPALIVE => number(0),
        so::ERROR => number(socket.take_error().map_or(0, |error| error.number())),
        so::SNDBUF | so::RCVBUF => number(socket.buffer() as i32),
        so::ACCEPTCONN => number(i32::from(socket.accepts())),
        so::PASSCRED => number(i32::from(socket.passes_cred())),
        so::RCVLOWAT | so::SNDLOWAT => number(1),
        so::LINGER => [0; 8].to_vec(),
        so::RCVTIMEO => limit(socket.timeouts().receive),
        so::SNDTIMEO => limit(socket.timeouts().send),
        so::PEERCRED => {
            let peer = socket.peer_cred();
            [peer.pid.to_ne_bytes(), peer.uid.to_ne_bytes(), peer.gid.to_ne_bytes()].concat()
        }
        so::PEERNAME => socket.peer_name()?.encode(),
        _ => return Err(Errno::ENOPROTOOPT),
    };
    let n = bytes.len().min(room);
    user::write_bytes(value, &bytes[..n])?;
    len.write(&(n as i32))
}
