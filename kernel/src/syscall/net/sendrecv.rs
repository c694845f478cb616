//! Sockets: sending and receiving, one message or many.

use super::message::{Name, receive_message, send_message};
use super::socket::{Any, any, write_name};
use crate::mm::user::iov::{IoVec, import_iovec};
use crate::mm::user::{self, UserPtr};
use crate::sync::Pace;
use crate::syscall::caller::file;
use crate::syscall::file::file::check_buffer;
use crate::vfs::OpenFile;
use abi::socket::{MmsgHdr, MsgFlags, MsgHdr, SOCK_STREAM};
use abi::time::Timespec;
use abi::{Errno, Result};

pub fn sendto(
    fd: i32,
    buf: u64,
    len: usize,
    flags: u32,
    addr: u64,
    addr_len: u32,
) -> Result<usize> {
    let file = file(fd)?;
    check_buffer(buf, len)?;
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
    check_buffer(buf, len)?;
    let iov = [user::UserSlice::new(buf, len)];
    let got = receive_message(&file, &iov, (0, 0), MsgFlags::from_bits_retain(flags))?;
    if let Some(from) = &got.from {
        write_name(from, addr, addr_len)?;
    } else if addr != 0 {
        addr_len.write(&0)?;
    }
    Ok(got.bytes)
}

pub fn sendmsg(fd: i32, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    send_header(&file, &msg.read()?, flags)
}

/// `send` and `sendto` of io_uring; without a copy only where the network is one, and is made all the same.
pub fn send_buffer(
    file: &OpenFile,
    (buf, len): (u64, usize),
    (addr, addr_len): (u64, u32),
    flags: u32,
    uncopied: bool,
) -> Result<usize> {
    if matches!(any(file)?, Any::Unix(_)) && uncopied {
        return Err(Errno::EOPNOTSUPP);
    }
    check_buffer(buf, len)?;
    let iov = [user::UserSlice::new(buf, len)];
    let name = if addr == 0 { Name::NONE } else { Name { addr, len: addr_len } };
    send_message(file, &iov, name, (0, 0), MsgFlags::from_bits_retain(flags))
}

/// Whether it is a socket whose transfers go on where the last one ended.
pub fn is_connected_kind(file: &OpenFile) -> bool {
    match any(file) {
        Ok(Any::Unix(socket)) => socket.kind().is_connected_kind(),
        Ok(Any::Net(socket)) => socket.kind() == SOCK_STREAM,
        Err(_) => false,
    }
}

/// `recv` of io_uring.
pub fn receive_buffer(file: &OpenFile, buf: u64, len: usize, flags: u32) -> Result<usize> {
    any(file)?;
    check_buffer(buf, len)?;
    let iov = [user::UserSlice::new(buf, len)];
    Ok(receive_message(file, &iov, (0, 0), MsgFlags::from_bits_retain(flags))?.bytes)
}

/// The length of a message's name: what is longer than any name is cut, what is negative is EINVAL.
fn name_len(header: &MsgHdr) -> Result<u32> {
    if header.namelen > i32::MAX as u32 {
        return Err(Errno::EINVAL);
    }
    Ok(header.namelen.min(128))
}

/// How much of a message was moved, and how much was to be.
pub type Part = (usize, usize);

/// The buffers of a message behind their first `skip` bytes, and their size: EMSGSIZE if there are too many.
fn import_rest(iov: &mut IoVec, header: &MsgHdr, skip: usize) -> Result<usize> {
    if header.iovlen > u64::from(MAX_MESSAGES) {
        return Err(Errno::EMSGSIZE);
    }
    import_iovec(iov, header.iov, header.iovlen as usize)?;
    let mut left = skip;
    for slice in iov.iter_mut() {
        let cut = left.min(slice.len);
        *slice = user::UserSlice::new(slice.addr.wrapping_add(cut as u64), slice.len - cut);
        left -= cut;
    }
    Ok(iov.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.len)))
}

/// Sends what a header in memory says.
pub fn send_header(file: &OpenFile, header: &MsgHdr, flags: u32) -> Result<usize> {
    send_rest(file, header, flags, 0).map(|(sent, _)| sent)
}

/// As [`send_header`], what is left behind the first `skip` bytes: the control data went with those.
pub fn send_rest(file: &OpenFile, header: &MsgHdr, flags: u32, skip: usize) -> Result<Part> {
    let mut iov = IoVec::new();
    let size = import_rest(&mut iov, header, skip)?;
    let name = match header.name {
        0 => Name::NONE,
        addr => Name { addr, len: name_len(header)? },
    };
    let control = match skip {
        0 => (header.control, header.controllen as usize),
        _ => (0, 0),
    };
    let flags = MsgFlags::from_bits_retain(flags);
    send_message(file, &iov, name, control, flags).map(|sent| (sent, size))
}

pub fn recvmsg(fd: i32, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    receive_header(&file, msg, flags)
}

/// Receives what a header in memory says.
pub fn receive_header(file: &OpenFile, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    receive_rest(file, msg, flags, 0).map(|(got, _)| got)
}

/// As [`receive_header`], behind the first `skip` bytes. As on Linux, who wants control data has all there is to be in one part.
pub fn receive_rest(
    file: &OpenFile,
    msg: UserPtr<MsgHdr>,
    flags: u32,
    skip: usize,
) -> Result<Part> {
    let header = msg.read()?;
    let mut iov = IoVec::new();
    let size = import_rest(&mut iov, &header, skip)?;
    let size = if header.controllen == 0 { size } else { 0 };
    Ok((receive_into(file, msg, header, &iov, flags)?, size))
}

/// Receives into `iov` what a header says, and tells it there.
#[inline]
pub fn receive_into(
    file: &OpenFile,
    msg: UserPtr<MsgHdr>,
    mut header: MsgHdr,
    iov: &[user::UserSlice],
    flags: u32,
) -> Result<usize> {
    if header.name != 0 {
        name_len(&header)?;
    }
    let control = (header.control, header.controllen as usize);
    let got = receive_message(file, iov, control, MsgFlags::from_bits_retain(flags))?;
    if header.name != 0 {
        let bytes = got.from.unwrap_or_default();
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
    any(&file)?;
    let mut done = 0;
    for i in (0..count.min(MAX_MESSAGES)).paced() {
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
    let deadline = crate::syscall::time::read_timeout(timeout)?;
    let file = file(fd)?;
    any(&file)?;
    let mut flags = MsgFlags::from_bits_retain(flags);
    let mut done = 0;
    for i in (0..count.min(MAX_MESSAGES)).paced() {
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
