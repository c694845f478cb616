//! [`Kept`]: what an entry points at beside its bytes, read while it is submitted: a program may use that memory for something else once
//! the call has returned (`IORING_FEAT_SUBMIT_STABLE`).
//!
//! Made of what cannot be carried out at once only: a request that waits, or stands behind one in a link or a drain. Owns the copies.
//! Never reads for a second time. Locks: none.

use super::check::{is_multishot, time_of};
use crate::fs::epoll::Event;
use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::mm::user::iov::{IoVec, import_iovec};
use crate::syscall::caller::read_path;
use crate::syscall::event::epoll;
use crate::syscall::file::path;
use crate::syscall::net::sendrecv::Message;
use crate::syscall::net::socket::read_address;
use crate::vfs::open::OpenHow;
use abi::fs::AtFlags;
use abi::time::Timespec;
use abi::uring::{Sqe, op, sqe as flag};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

pub enum Kept {
    /// READV, WRITEV.
    Buffers(IoVec),
    /// SENDMSG, SENDMSG_ZC, RECVMSG.
    Message(Message),
    /// A `sockaddr`: SEND, SEND_ZC, CONNECT, BIND.
    Name(Vec<u8>),
    /// TIMEOUT, LINK_TIMEOUT, and TIMEOUT_REMOVE that changes one.
    Time(Timespec),
    /// EPOLL_CTL.
    Event(Event),
    /// OPENAT, OPENAT2.
    Open(Vec<u8>, OpenHow),
    /// STATX, UNLINKAT, MKDIRAT; RENAMEAT, SYMLINKAT and LINKAT, which have two.
    Paths([Vec<u8>; 2]),
}

/// A name; `ENOENT` for an empty one.
fn read_name(addr: u64) -> Result<Vec<u8>> {
    let name = read_path(addr)?;
    if name.is_empty() { Err(Errno::ENOENT) } else { Ok(name) }
}

impl Kept {
    /// Reads what the entry points at, if it points at any such thing.
    pub fn of(sqe: &Sqe) -> Result<Option<Arc<Self>>> {
        let kept = match sqe.opcode {
            op::READV | op::WRITEV => {
                let mut buffers = IoVec::new();
                import_iovec(&mut buffers, sqe.addr, sqe.len as usize)?;
                Self::Buffers(buffers)
            }
            // Its entry says all: `keep_header`.
            op::RECVMSG if sqe.flags & flag::BUFFER_SELECT != 0 && is_multishot(sqe) => {
                return Ok(None);
            }
            op::SENDMSG | op::SENDMSG_ZC | op::RECVMSG => {
                let header = UserPtr::new(sqe.addr).read()?;
                Self::Message(Message::read(header, sqe.opcode != op::RECVMSG)?)
            }
            op::SEND | op::SEND_ZC if sqe.off != 0 && sqe.file_index != 0 => {
                Self::Name(read_address(sqe.off, sqe.file_index)?)
            }
            op::CONNECT | op::BIND => Self::Name(read_address(sqe.addr, sqe.off as u32)?),
            op::TIMEOUT | op::LINK_TIMEOUT | op::TIMEOUT_REMOVE => match time_of(sqe) {
                0 => return Ok(None),
                at => {
                    let time: Timespec = UserPtr::new(at).read()?;
                    time.to_nanos().ok_or(Errno::EINVAL)?;
                    Self::Time(time)
                }
            },
            op::EPOLL_CTL => {
                let event = epoll::wanted_event(sqe.len.cast_signed(), sqe.addr)?;
                Self::Event(event)
            }
            op::OPENAT => {
                Self::Open(read_name(sqe.addr)?, OpenHow::classic(sqe.op_flags, sqe.len)?)
            }
            op::OPENAT2 => {
                let name = read_name(sqe.addr)?;
                Self::Open(name, path::read_how(UserPtr::new(sqe.off), sqe.len as usize)?)
            }
            op::UNLINKAT | op::MKDIRAT => Self::Paths([read_name(sqe.addr)?, Vec::new()]),
            // By its descriptor, as no name says.
            op::STATX if sqe.addr == 0 => return Ok(None),
            op::STATX | op::LINKAT if sqe.op_flags & AtFlags::EMPTY_PATH.bits() != 0 => {
                let second = if sqe.opcode == op::STATX { Vec::new() } else { read_name(sqe.off)? };
                Self::Paths([read_path(sqe.addr)?, second])
            }
            op::STATX => Self::Paths([read_name(sqe.addr)?, Vec::new()]),
            op::RENAMEAT | op::SYMLINKAT | op::LINKAT => {
                Self::Paths([read_name(sqe.addr)?, read_name(sqe.off)?])
            }
            _ => return Ok(None),
        };
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        try_arc(kept).map(Some)
    }
}
