//! Sockets: options.

use super::filter;
use super::socket::{Any, any};
use crate::mm::fallible::{TrySlice, TryVec, try_copy};
use crate::mm::user::{self, UserPtr};
use crate::net::filter::Slot;
use crate::net::option::more;
use crate::net::unix::Socket;
use crate::net::{self, NetSocket, PeekOffset, Timeouts};
use crate::syscall::caller::file;
use abi::net::{SOL_NETLINK, netlink};
use abi::socket::{AF_UNIX, Linger, SOL_SOCKET, so};
use abi::time::Timeval;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The longest value that any option of a network has.
const MAX_VALUE: usize = 256;

pub fn setsockopt(fd: i32, level: i32, option: i32, value: u64, len: i32) -> Result<()> {
    let file = file(fd)?;
    let socket = any(&file)?;
    if level == SOL_SOCKET
        && let Some(done) = filter::set(filter_of(&socket), option, value, len)
    {
        if let Any::Net(socket) = &socket {
            socket.filter_changed();
        }
        return done;
    }
    if (level, option) == (SOL_SOCKET, so::PEEK_OFF) {
        if len < size_of::<i32>() as i32 {
            return Err(Errno::EINVAL);
        }
        let number: i32 = UserPtr::new(value).read()?;
        peek_offset_of(&socket)?.set(number);
        return Ok(());
    }
    match socket {
        Any::Unix(socket) => set_unix(socket, level, option, value, len),
        Any::Net(socket) => {
            let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
            let mut bytes = [0; MAX_VALUE];
            let bytes = &mut bytes[..len.min(MAX_VALUE)];
            user::read_bytes(value, bytes)?;
            match (level, option) {
                (SOL_SOCKET, more::BINDTODEVICE) => bind_to_device(bytes),
                _ => socket.set_option(level, option, bytes),
            }
        }
    }
}

fn filter_of<'a>(socket: &Any<'a>) -> &'a Slot {
    match socket {
        Any::Unix(socket) => socket.filter(),
        Any::Net(socket) => &socket.options().filter,
    }
}

fn peek_offset_of<'a>(socket: &'a Any<'_>) -> Result<&'a PeekOffset> {
    match socket {
        Any::Unix(socket) => Ok(&socket.peek_offset),
        Any::Net(socket) => socket.peek_offset().ok_or(Errno::EOPNOTSUPP),
    }
}

/// SO_BINDTODEVICE: there is one device, so binding to it changes nothing.
fn bind_to_device(name: &[u8]) -> Result<()> {
    match name.split(|&b| b == 0).next() {
        None | Some(b"" | b"lo") => Ok(()),
        Some(_) => Err(Errno::ENODEV),
    }
}

fn set_unix(socket: &Arc<Socket>, level: i32, option: i32, value: u64, len: i32) -> Result<()> {
    if level != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = || {
        if len < 4 { Err(Errno::EINVAL) } else { UserPtr::<i32>::new(value).read() }
    };
    match option {
        more::ZEROCOPY => return number().and(Err(Errno::EOPNOTSUPP)),
        so::PASSCRED => socket.set_pass_cred(number()? != 0),
        more::PASSSEC => socket.set_pass_sec(number()? != 0),
        more::OOBINLINE => socket.set_oob_inline(number()? != 0),
        stamp @ (more::TIMESTAMP
        | more::TIMESTAMPNS
        | more::TIMESTAMP_NEW
        | more::TIMESTAMPNS_NEW) => socket.set_stamps(stamp, number()? != 0),
        so::SNDBUF | so::SNDBUFFORCE => {
            socket.set_buffer(u32::try_from(number()?).unwrap_or(u32::MAX));
        }
        so::RCVBUF | so::RCVBUFFORCE => {
            socket.set_receive_buffer(u32::try_from(number()?).unwrap_or(u32::MAX));
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
        so::RCVLOWAT => socket.set_low_water(number()?),
        // Settings that make no difference to a local socket, on Linux either.
        so::REUSEADDR | so::BROADCAST | so::KEEPALIVE => drop(number()?),
        so::LINGER => drop(UserPtr::<Linger>::new(value).read()?),
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(())
}

pub fn getsockopt(fd: i32, level: i32, option: i32, value: u64, len: UserPtr<i32>) -> Result<()> {
    let file = file(fd)?;
    let socket = any(&file)?;
    let room = usize::try_from(len.read()?).map_err(|_| Errno::EINVAL)?;
    if (level, option) == (SOL_SOCKET, so::GET_FILTER) {
        let told = filter::get(filter_of(&socket), value, room)?;
        return len.write(&(told as i32));
    }
    let bytes = match &socket {
        _ if (level, option) == (SOL_SOCKET, so::LOCK_FILTER) => {
            i32::from(filter_of(&socket).is_locked()).to_ne_bytes().try_owned()?
        }
        socket if (level, option) == (SOL_SOCKET, so::PEEK_OFF) => {
            peek_offset_of(socket)?.number().to_ne_bytes().try_owned()?
        }
        Any::Unix(socket) => get_unix(socket, level, option)?,
        Any::Net(socket) if level == SOL_SOCKET => get_common(&***socket, option)?,
        Any::Net(socket) => socket.get_option(level, option, room)?,
    };
    if level == SOL_NETLINK && option == netlink::LIST_MEMBERSHIPS {
        // The one option that tells how long it is, whatever fits or can be written; what fits is words.
        let fitting = &bytes[..bytes.len().min(room & !3)];
        let mut words = fitting.chunks(4).enumerate();
        let written = words.try_for_each(|(nth, word)| {
            user::write_bytes(value.wrapping_add(4 * nth as u64), word)
        });
        return len.write(&(bytes.len() as i32)).and(written);
    }
    let n = bytes.len().min(room);
    user::write_bytes(value, &bytes[..n])?;
    len.write(&(n as i32))
}

/// What `SOL_SOCKET` tells of every socket of a network.
fn get_common(socket: &dyn NetSocket, option: i32) -> Result<Vec<u8>> {
    let number = |n: i32| n.to_ne_bytes().try_owned();
    match option {
        so::TYPE => number(socket.kind().cast_signed()),
        so::DOMAIN => number(i32::from(socket.domain())),
        so::PROTOCOL => number(socket.protocol()),
        so::ERROR => told_once(|| socket.take_error()),
        so::ACCEPTCONN => number(i32::from(socket.accepts())),
        so::PEERNAME => socket.peer_name()?.try_owned(),
        _ => socket.get_option(SOL_SOCKET, option, 4),
    }
}

/// An error that is told once: it is taken when nothing can fail any more.
fn told_once(take: impl FnOnce() -> Option<Errno>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_room(4)?;
    bytes.try_extend_from_slice(&take().map_or(0, Errno::number).to_ne_bytes())?;
    Ok(bytes)
}

fn get_unix(socket: &Arc<Socket>, level: i32, option: i32) -> Result<Vec<u8>> {
    if level != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = |n: i32| n.to_ne_bytes().try_owned();
    let limit = |nanos: u64| {
        let time = Timeval::from_nanos(nanos);
        try_copy([time.sec.to_ne_bytes(), time.usec.to_ne_bytes()].as_flattened())
    };
    Ok(match option {
        more::ZEROCOPY => number(0)?,
        so::TYPE => number(socket.kind().number() as i32)?,
        so::DOMAIN => number(i32::from(AF_UNIX))?,
        so::PROTOCOL | so::REUSEADDR | so::BROADCAST | so::KEEPALIVE => number(0)?,
        so::ERROR => told_once(|| socket.take_error())?,
        so::SNDBUF => number(socket.buffer() as i32)?,
        so::RCVBUF => number(socket.receive_buffer() as i32)?,
        so::ACCEPTCONN => number(i32::from(socket.accepts()))?,
        so::PASSCRED => number(i32::from(socket.passes_cred()))?,
        more::PASSSEC => number(i32::from(socket.passes_sec()))?,
        more::OOBINLINE => number(i32::from(socket.reads_oob_inline()))?,
        more::TIMESTAMP | more::TIMESTAMPNS | more::TIMESTAMP_NEW | more::TIMESTAMPNS_NEW => {
            number(i32::from(net::stamp_shows(socket.stamps(), option)))?
        }
        so::RCVLOWAT => number(socket.low_water().cast_signed())?,
        so::SNDLOWAT => number(1)?,
        so::LINGER => [0; 8].try_owned()?,
        so::RCVTIMEO => limit(socket.timeouts().receive)?,
        so::SNDTIMEO => limit(socket.timeouts().send)?,
        so::PEERCRED => {
            let peer = socket.peer_cred();
            let words = [peer.pid.to_ne_bytes(), peer.uid.to_ne_bytes(), peer.gid.to_ne_bytes()];
            try_copy(words.as_flattened())?
        }
        so::PEERNAME => socket.peer_name()?.encode().try_owned()?,
        _ => return Err(Errno::ENOPROTOOPT),
    })
}
