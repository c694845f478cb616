//! RECVMSG into a provided buffer: once, with the header where it is, or again and again, each message with a header of its own in its
//! buffer (`struct io_uring_recvmsg_out`).
//!
//! What a header in user memory says of many messages is read once and kept in the copy of the entry, whose fields it fills that say
//! nothing else then. Owns nothing. Locks: none of its own.

use super::super::kept::Kept;
use crate::mm::user::{self, UserPtr, UserSlice};
use crate::syscall::file::file::check_buffer;
use crate::syscall::net::message::receive_message;
use crate::syscall::net::sendrecv::{Part, receive_into};
use crate::syscall::net::socket::any;
use crate::vfs::OpenFile;
use abi::socket::{MsgFlags, MsgHdr};
use abi::uring::{RecvmsgOut, Sqe};
use abi::{Errno, Result};
use zerocopy::IntoBytes;

/// Longest name that is received.
const LONGEST_NAME: usize = 128;

/// What a header says of buffers: how much of one is wanted, nothing for all. `EINVAL` if it has more than one.
pub fn wanted(header: &MsgHdr) -> Result<u32> {
    match header.iovlen {
        0 => Ok(0),
        1 => UserPtr::<UserSlice>::new(header.iov).read().map(|slice| slice.len as u32),
        _ => Err(Errno::EINVAL),
    }
}

/// Rooms for the name and the control data of each of many messages.
#[derive(Clone, Copy)]
struct Rooms {
    name: u32,
    control: u32,
}

impl Rooms {
    fn of(sqe: &Sqe) -> Self {
        Self { name: sqe.off as u32, control: (sqe.off >> 32) as u32 }
    }

    /// Bytes before the payload.
    fn head(self) -> u64 {
        size_of::<RecvmsgOut>() as u64 + u64::from(self.name) + u64::from(self.control)
    }
}

/// Lets the copy of an entry that receives many messages say what the header in user memory does.
pub fn keep_header(sqe: &mut Sqe) -> Result<()> {
    let header = UserPtr::<MsgHdr>::new(sqe.addr).read()?;
    sqe.len = wanted(&header)?;
    if header.namelen > i32::MAX as u32 {
        return Err(if header.name == 0 { Errno::EOVERFLOW } else { Errno::EINVAL });
    }
    let control = u32::try_from(header.controllen).map_err(|_| Errno::EOVERFLOW)?;
    sqe.off = u64::from(header.namelen) | u64::from(control) << 32;
    if Rooms::of(sqe).head() > i32::MAX as u64 { Err(Errno::EOVERFLOW) } else { Ok(()) }
}

/// What the header of a message says.
pub fn header_of(sqe: &Sqe, kept: Option<&Kept>) -> Result<MsgHdr> {
    match kept {
        Some(Kept::Message(message)) => Ok(*message.header()),
        _ => UserPtr::new(sqe.addr).read(),
    }
}

/// Receives a message into `buffer`.
pub fn receive_once(file: &OpenFile, sqe: &Sqe, header: MsgHdr, buffer: UserSlice) -> Result<Part> {
    any(file)?;
    check_buffer(buffer.addr, buffer.len)?;
    let msg = UserPtr::<MsgHdr>::new(sqe.addr);
    let size = if header.controllen == 0 { buffer.len } else { 0 };
    Ok((receive_into(file, msg, header, &[buffer], sqe.op_flags)?, size))
}

/// One of many: its header, its name, its control data, itself. Whether there was a message, and not the end.
pub fn receive_framed(file: &OpenFile, sqe: &Sqe, buffer: UserSlice) -> Result<(usize, bool)> {
    any(file)?;
    check_buffer(buffer.addr, buffer.len)?;
    let rooms = Rooms::of(sqe);
    let head = rooms.head() as usize;
    let room = buffer.len.checked_sub(head).ok_or(Errno::EFAULT)?;
    let payload = UserSlice::new(buffer.addr + head as u64, room);
    let name_at = buffer.addr + size_of::<RecvmsgOut>() as u64;
    let control = match rooms.control {
        0 => (0, 0),
        control => (name_at + u64::from(rooms.name), control as usize),
    };
    let got = receive_message(file, &[payload], control, MsgFlags::from_bits_retain(sqe.op_flags))?;
    let name = match rooms.name {
        0 => &[],
        _ => got.from.as_deref().unwrap_or_default(),
    };
    let out = RecvmsgOut {
        namelen: name.len() as u32,
        controllen: got.control_len as u32,
        payloadlen: got.bytes as u32,
        flags: got.flags.bits(),
    };
    user::write_bytes(buffer.addr, out.as_bytes())?;
    let fits = name.len().min(rooms.name as usize).min(LONGEST_NAME);
    user::write_bytes(name_at, &name[..fits])?;
    Ok((head + got.bytes.min(room), got.bytes != 0))
}
