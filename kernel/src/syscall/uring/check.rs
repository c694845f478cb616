//! What an entry can be: which operations there are, and which fields of each must be zero.
//!
//! Owns the table of operations. Never looks at more than the copy of an entry. Locks: none.

use super::buffers::{check_provide, check_remove};
use abi::fs::{AtFlags, OpenFlags};
use abi::socket::SOCK_TYPE_MASK;
use abi::uring::{Sqe, op, sqe as flag};
use abi::{Errno, Result};

/// `IORING_RECVSEND_POLL_FIRST`: a hint that costs nothing to ignore.
const POLL_FIRST: u16 = 1;
/// `IORING_RECV_MULTISHOT`.
const RECV_MULTISHOT: u16 = 2;
/// `IORING_ACCEPT_MULTISHOT`.
const ACCEPT_MULTISHOT: u16 = 1;
/// `IORING_ACCEPT_DONTWAIT`.
pub const ACCEPT_DONTWAIT: u16 = 2;
/// `MSG_WAITALL`.
const WAITALL: u32 = 0x100;

/// What holds for an operation whatever its entry says.
#[derive(Clone, Copy)]
struct Kind(u8);

impl Kind {
    /// It is built.
    const KNOWN: u8 = 1;
    /// It moves bytes or connections, which may have to wait.
    const TRANSFER: u8 = 2;
    /// It works on the file that `fd` says, and cannot on a registered one.
    const OPEN_FILE: u8 = 4;
    /// It works on names or descriptors, never on a registered file.
    const NAMES: u8 = 8;
    /// It can take a provided buffer.
    const SELECTS: u8 = 16;

    const fn of(opcode: u8) -> Self {
        Self(match opcode {
            op::READ | op::RECV => Self::KNOWN | Self::TRANSFER | Self::SELECTS,
            op::WRITE | op::READV | op::WRITEV => Self::KNOWN | Self::TRANSFER,
            op::READ_FIXED | op::WRITE_FIXED => Self::KNOWN | Self::TRANSFER,
            op::SEND | op::SENDMSG | op::RECVMSG | op::ACCEPT | op::CONNECT => {
                Self::KNOWN | Self::TRANSFER
            }
            op::FSYNC
            | op::FALLOCATE
            | op::SHUTDOWN
            | op::FTRUNCATE
            | op::BIND
            | op::LISTEN
            | op::FADVISE
            | op::SYNC_FILE_RANGE => Self::KNOWN | Self::OPEN_FILE,
            op::OPENAT
            | op::OPENAT2
            | op::CLOSE
            | op::STATX
            | op::RENAMEAT
            | op::UNLINKAT
            | op::MKDIRAT
            | op::SYMLINKAT
            | op::LINKAT => Self::KNOWN | Self::NAMES,
            op::NOP
            | op::MADVISE
            | op::EPOLL_CTL
            | op::SOCKET
            | op::PROVIDE_BUFFERS
            | op::REMOVE_BUFFERS
            | op::POLL_ADD
            | op::POLL_REMOVE
            | op::TIMEOUT
            | op::TIMEOUT_REMOVE
            | op::LINK_TIMEOUT
            | op::ASYNC_CANCEL => Self::KNOWN,
            _ => 0,
        })
    }

    const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

static KINDS: [Kind; 256] = {
    let mut kinds = [Kind(0); 256];
    let mut opcode = 0;
    while opcode < kinds.len() {
        kinds[opcode] = Kind::of(opcode as u8);
        opcode += 1;
    }
    kinds
};

fn kind(opcode: u8) -> Kind {
    KINDS[usize::from(opcode)]
}

/// Whether the operation is built.
pub fn is_known(opcode: u8) -> bool {
    kind(opcode).has(Kind::KNOWN)
}

/// Whether it moves bytes or connections, which may have to wait.
#[inline]
pub fn is_transfer(opcode: u8) -> bool {
    kind(opcode).has(Kind::TRANSFER)
}

/// Whether it reads or writes a file.
pub fn is_rw(opcode: u8) -> bool {
    matches!(
        opcode,
        op::READ | op::WRITE | op::READV | op::WRITEV | op::READ_FIXED | op::WRITE_FIXED
    )
}

/// Why the entry cannot be carried out at all, in Linux's order.
#[inline]
pub fn check(sqe: &Sqe) -> Result<()> {
    const PLAIN: u8 = !(flag::KNOWN & !(flag::BUFFER_SELECT | flag::FIXED_FILE));
    let kind = kind(sqe.opcode);
    if !kind.has(Kind::KNOWN) {
        return Err(Errno::EINVAL);
    }
    if u16::from(sqe.flags & PLAIN) | sqe.ioprio | sqe.personality != 0 {
        return check_rare(sqe, kind);
    }
    check_fields(sqe)
}

/// As [`check`], for what few entries say.
#[cold]
fn check_rare(sqe: &Sqe, kind: Kind) -> Result<()> {
    if sqe.flags & !flag::KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    if sqe.flags & flag::BUFFER_SELECT != 0 && !kind.has(Kind::SELECTS) {
        return Err(Errno::EOPNOTSUPP);
    }
    if sqe.ioprio != 0 && !kind.has(Kind::TRANSFER) || sqe.personality != 0 {
        return Err(Errno::EINVAL);
    }
    let is_fixed = sqe.flags & flag::FIXED_FILE != 0;
    if is_fixed && kind.has(Kind::OPEN_FILE) {
        return Err(Errno::EINVAL);
    }
    check_fields(sqe)?;
    if is_fixed && kind.has(Kind::NAMES) { Err(Errno::EBADF) } else { Ok(()) }
}

/// Why its fields cannot be: most operations say the same of all.
#[inline]
fn check_fields(sqe: &Sqe) -> Result<()> {
    match sqe.opcode {
        op::PROVIDE_BUFFERS => check_provide(sqe),
        op::REMOVE_BUFFERS => check_remove(sqe),
        _ if has_good_fields(sqe) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether a completion need not be its last.
pub fn is_multishot(sqe: &Sqe) -> bool {
    match sqe.opcode {
        op::RECV => sqe.ioprio & RECV_MULTISHOT != 0,
        op::ACCEPT => sqe.ioprio & ACCEPT_MULTISHOT != 0,
        _ => false,
    }
}

#[inline]
fn has_good_fields(sqe: &Sqe) -> bool {
    let none = |fields: &[u64]| fields.iter().all(|&field| field == 0);
    let Sqe { off, addr, len, op_flags, buf_index, file_index, addr3, .. } = *sqe;
    let (len, flags, buf, index) =
        (u64::from(len), u64::from(op_flags), u64::from(buf_index), u64::from(file_index));
    match sqe.opcode {
        op::NOP => flags & !1 == 0,
        op::FSYNC => none(&[addr, buf, index]) && flags & !1 == 0,
        op::FALLOCATE => none(&[buf, flags, index]),
        op::OPENAT | op::OPENAT2 => none(&[buf, index]),
        op::CLOSE => none(&[off, addr, len, flags, buf, index]),
        op::STATX | op::MADVISE | op::FADVISE | op::EPOLL_CTL => none(&[buf, index]),
        op::SYNC_FILE_RANGE => none(&[addr, buf, index]),
        op::RENAMEAT | op::LINKAT => none(&[buf, index]),
        op::UNLINKAT => none(&[off, len, buf, index]) && op_flags & !AtFlags::REMOVEDIR.bits() == 0,
        op::MKDIRAT => none(&[off, flags, buf, index]),
        op::SYMLINKAT => none(&[len, flags, buf, index]),
        op::SHUTDOWN => none(&[off, addr, flags, buf, index]),
        op::SOCKET => {
            let known = SOCK_TYPE_MASK | (OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits();
            none(&[addr, flags, buf, index]) && off as u32 & !known == 0
        }
        op::FTRUNCATE => none(&[flags, addr, len, buf, index, addr3]),
        op::BIND => none(&[len, flags, buf, index]),
        op::LISTEN => none(&[off, addr, flags, buf, index]),
        op::RECV if is_multishot(sqe) => {
            none(&[index, off, len])
                && sqe.ioprio & !(POLL_FIRST | RECV_MULTISHOT) == 0
                && sqe.flags & flag::BUFFER_SELECT != 0
                && op_flags & WAITALL == 0
        }
        op::SEND | op::RECV | op::SENDMSG | op::RECVMSG => {
            none(&[index]) && sqe.ioprio & !POLL_FIRST == 0
        }
        op::ACCEPT => {
            none(&[len, buf, index])
                && sqe.ioprio & !(ACCEPT_MULTISHOT | ACCEPT_DONTWAIT | POLL_FIRST << 2) == 0
                && op_flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() == 0
        }
        // MULTI, which tells of each event and so is never silent.
        op::POLL_ADD => {
            none(&[off, addr, buf])
                && len & !1 == 0
                && (len == 0 || sqe.flags & flag::CQE_SKIP_SUCCESS == 0)
        }
        op::POLL_REMOVE => none(&[off, len, flags, buf, index]),
        // ABS, a clock and ETIME_SUCCESS.
        op::TIMEOUT => {
            none(&[off, buf, index]) && len == 1 && flags & !0x2d == 0 && flags & 0xc != 0xc
        }
        op::LINK_TIMEOUT => {
            none(&[off, buf, index]) && len == 1 && flags & !0xd == 0 && flags & 0xc != 0xc
        }
        op::TIMEOUT_REMOVE => none(&[len, flags, buf, index]),
        // ALL, FD and ANY.
        op::ASYNC_CANCEL => none(&[off, index]) && flags & !7 == 0 && flags & 6 != 6,
        op::CONNECT => none(&[len, buf, flags, index]) && sqe.ioprio == 0,
        _ => true,
    }
}
