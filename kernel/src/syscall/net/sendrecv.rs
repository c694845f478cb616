//! Sockets: sending and receiving, one message or many.

use super::message::{Name, receive_message, send_message};
use super::socket::{Any, any, read_address, write_name};
use crate::mm::user::iov::{IoVec, copy_of, import_iovec};
use crate::mm::user::{self, UserPtr};
use crate::sync::Pace;
use crate::syscall::caller::file;
use crate::syscall::file::file::check_buffer;
use crate::vfs::OpenFile;
use abi::socket::{MmsgHdr, MsgFlags, MsgHdr, SOCK_STREAM};
use abi::time::Timespec;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::mem::offset_of;

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
    send_message(
        &file,
        &iov,
        Name::given(addr, addr_len),
        (0, 0),
        MsgFlags::from_bits_retain(flags),
    )
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
    name: Name<'_>,
    flags: u32,
) -> Result<usize> {
    any(file)?;
    check_buffer(buf, len)?;
    let iov = [user::UserSlice::new(buf, len)];
    send_message(file, &iov, name, (0, 0), MsgFlags::from_bits_retain(flags))
}

/// Whether a socket can send bytes that are not copied.
pub fn check_zero_copy(file: &OpenFile) -> Result<()> {
    if matches!(any(file)?, Any::Unix(_)) { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
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

/// The buffers of a message: EMSGSIZE if there are too many.
fn import_buffers(iov: &mut IoVec, header: &MsgHdr) -> Result<()> {
    if header.iovlen > u64::from(MAX_MESSAGES) {
        return Err(Errno::EMSGSIZE);
    }
    import_iovec(iov, header.iov, header.iovlen as usize)
}

/// Takes the first `skip` bytes out of the buffers: the size of the rest.
fn cut(iov: &mut [user::UserSlice], skip: usize) -> usize {
    let mut left = skip;
    for slice in iov.iter_mut() {
        let cut = left.min(slice.len);
        *slice = user::UserSlice::new(slice.addr.wrapping_add(cut as u64), slice.len - cut);
        left -= cut;
    }
    iov.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.len))
}

fn name_of(header: &MsgHdr) -> Result<Name<'static>> {
    match header.name {
        0 => Ok(Name::None),
        addr => Ok(Name::given(addr, name_len(header)?)),
    }
}

/// A message's header, and what it points at, but for the bytes and the control data.
pub struct Message {
    header: MsgHdr,
    buffers: IoVec,
    /// Of what is sent.
    name: Vec<u8>,
}

impl Message {
    /// Reads what a header in memory says, of a message to be sent or to be received.
    pub fn read(header: MsgHdr, is_sent: bool) -> Result<Self> {
        let mut buffers = IoVec::new();
        import_buffers(&mut buffers, &header)?;
        let name = match name_of(&header)? {
            Name::At(addr, len) if is_sent => read_address(addr, len)?,
            _ => Vec::new(),
        };
        Ok(Self { header, buffers, name })
    }

    pub fn header(&self) -> &MsgHdr {
        &self.header
    }

    /// The buffers behind their first `skip` bytes, and their size.
    fn rest(&self, skip: usize) -> Result<(IoVec, usize)> {
        let mut rest = copy_of(&self.buffers)?;
        let size = cut(&mut rest, skip);
        Ok((rest, size))
    }

    /// Sends what is left behind the first `skip` bytes: the control data went with those.
    pub fn send(&self, file: &OpenFile, flags: u32, skip: usize) -> Result<Part> {
        let (rest, size) = self.rest(skip)?;
        send_parts(file, (&rest, size), Name::Read(&self.name), &self.header, flags, skip)
    }

    /// Receives behind the first `skip` bytes, and tells it at `msg`.
    pub fn receive(
        &self,
        file: &OpenFile,
        msg: UserPtr<MsgHdr>,
        flags: u32,
        skip: usize,
    ) -> Result<Part> {
        let (rest, size) = self.rest(skip)?;
        receive_parts(file, msg, self.header, (&rest, size), flags)
    }
}

fn send_parts(
    file: &OpenFile,
    (buffers, size): (&[user::UserSlice], usize),
    name: Name<'_>,
    header: &MsgHdr,
    flags: u32,
    skip: usize,
) -> Result<Part> {
    let control = match skip {
        0 => (header.control, header.controllen as usize),
        _ => (0, 0),
    };
    let flags = MsgFlags::from_bits_retain(flags);
    send_message(file, buffers, name, control, flags).map(|sent| (sent, size))
}

/// Sends what a header in memory says.
pub fn send_header(file: &OpenFile, header: &MsgHdr, flags: u32) -> Result<usize> {
    send_once(file, header, flags).map(|(sent, _)| sent)
}

/// As [`send_header`]: how much was sent, and was to be.
pub fn send_once(file: &OpenFile, header: &MsgHdr, flags: u32) -> Result<Part> {
    let mut iov = IoVec::new();
    import_buffers(&mut iov, header)?;
    let size = cut(&mut iov, 0);
    send_parts(file, (&iov, size), name_of(header)?, header, flags, 0)
}

pub fn recvmsg(fd: i32, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    let file = file(fd)?;
    receive_header(&file, msg, flags)
}

/// Receives what a header in memory says.
pub fn receive_header(file: &OpenFile, msg: UserPtr<MsgHdr>, flags: u32) -> Result<usize> {
    receive_once(file, msg, flags).map(|(got, _)| got)
}

/// As [`receive_header`]: how much was received, and was to be.
pub fn receive_once(file: &OpenFile, msg: UserPtr<MsgHdr>, flags: u32) -> Result<Part> {
    let header = msg.read()?;
    let mut iov = IoVec::new();
    import_buffers(&mut iov, &header)?;
    let size = cut(&mut iov, 0);
    receive_parts(file, msg, header, (&iov, size), flags)
}

/// As on Linux, who wants control data has all there is to be in one part.
fn receive_parts(
    file: &OpenFile,
    msg: UserPtr<MsgHdr>,
    header: MsgHdr,
    (buffers, size): (&[user::UserSlice], usize),
    flags: u32,
) -> Result<Part> {
    let size = if header.controllen == 0 { size } else { 0 };
    Ok((receive_into(file, msg, header, buffers, flags)?, size))
}

/// Receives into `iov` what a header says, and tells it there.
#[inline]
pub fn receive_into(
    file: &OpenFile,
    msg: UserPtr<MsgHdr>,
    header: MsgHdr,
    iov: &[user::UserSlice],
    flags: u32,
) -> Result<usize> {
    if header.name != 0 {
        name_len(&header)?;
    }
    let control = (header.control, header.controllen as usize);
    let got = receive_message(file, iov, control, MsgFlags::from_bits_retain(flags))?;
    let place = |field: usize| msg.addr().wrapping_add(field as u64);
    if header.name != 0 {
        let bytes = got.from.unwrap_or_default();
        let room = (header.namelen as usize).min(bytes.len());
        user::write_bytes(header.name, &bytes[..room])?;
        let len = (bytes.len() as u32).to_ne_bytes();
        user::write_bytes(place(offset_of!(MsgHdr, namelen)), &len)?;
    }
    // The two that are told stand side by side; what the program says there is left as it is.
    const { assert!(offset_of!(MsgHdr, controllen) + 8 == offset_of!(MsgHdr, flags)) };
    let mut told = [0; 12];
    told[..8].copy_from_slice(&(got.control_len as u64).to_ne_bytes());
    told[8..].copy_from_slice(&got.flags.bits().to_ne_bytes());
    user::write_bytes(place(offset_of!(MsgHdr, controllen)), &told)?;
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
