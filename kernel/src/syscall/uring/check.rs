//! What an entry can be: which operations there are, and which fields of each must be zero.
//!
//! Owns the table of operations. Never looks at more than the copy of an entry. Locks: none.

use super::handed::buffers::{check_provide, check_remove};
use crate::fs::epoll::Epoll;
use crate::syscall::task::ioprio::check_priority;
use crate::vfs::OpenFile;
use abi::fs::{AtFlags, OpenFlags};
use abi::socket::SOCK_TYPE_MASK;
use abi::uring::{Sqe, cancel, op, sqe as flag};
use abi::{Errno, Result};

/// `IORING_RECVSEND_POLL_FIRST`: a hint that costs nothing to ignore.
const POLL_FIRST: u16 = 1;
/// `IORING_RECV_MULTISHOT`.
const RECV_MULTISHOT: u16 = 2;
/// `IORING_ACCEPT_MULTISHOT`.
const ACCEPT_MULTISHOT: u16 = 1;
/// `IORING_ACCEPT_DONTWAIT`.
pub const ACCEPT_DONTWAIT: u16 = 2;
/// `IORING_RECVSEND_FIXED_BUF`, `IORING_SEND_ZC_REPORT_USAGE`.
const FIXED_BUF: u16 = 4;
pub const REPORT_USAGE: u16 = 8;
/// `IORING_FIXED_FD_NO_CLOEXEC`.
pub const INSTALL_NO_CLOEXEC: u32 = 1;
/// `MSG_WAITALL`.
pub const WAITALL: u32 = 0x100;

/// `SPLICE_F_FD_IN_FIXED`, and those that the calls take.
pub const FD_IN_FIXED: u32 = 1 << 31;
pub const SPLICE_FLAGS: u32 = 15;

/// IORING_TIMEOUT_UPDATE, IORING_LINK_TIMEOUT_UPDATE.
pub const TIMEOUT_UPDATE: u32 = 2;
pub const LINK_TIMEOUT_UPDATE: u32 = 16;

/// IORING_POLL_ADD_MULTI, and what POLL_REMOVE may change: events, what a completion says.
pub const MULTI: u32 = 1;
pub const UPDATE_EVENTS: u32 = 2;
pub const UPDATE_USER_DATA: u32 = 4;

/// `FUTEX2_SIZE_U32` and `FUTEX2_PRIVATE`; no other size is built, as on Linux.
const FUTEX_U32: u32 = 2;
const FUTEX_PRIVATE: u32 = 128;

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
    /// Its fields can be anything.
    const ANY_FIELDS: u8 = 32;
    const RW: u8 = Self::KNOWN | Self::TRANSFER | Self::ANY_FIELDS;

    const fn of(opcode: u8) -> Self {
        Self(match opcode {
            op::RECV | op::RECVMSG => Self::KNOWN | Self::TRANSFER | Self::SELECTS,
            op::READ | op::READV => Self::RW | Self::SELECTS,
            op::WRITE | op::WRITEV | op::READ_FIXED | op::WRITE_FIXED => Self::RW,
            op::SEND | op::SEND_ZC | op::SENDMSG | op::SENDMSG_ZC | op::ACCEPT | op::CONNECT => {
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
            op::FILES_UPDATE => Self::KNOWN | Self::OPEN_FILE,
            op::NOP
            | op::SPLICE
            | op::TEE
            | op::MSG_RING
            | op::WAITID
            | op::FUTEX_WAIT
            | op::FUTEX_WAKE
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
            | op::FIXED_FD_INSTALL
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

/// How many operations are built, which the table of system calls says.
pub const BUILT: usize = {
    let (mut built, mut opcode) = (0, 0);
    while opcode < KINDS.len() {
        built += KINDS[opcode].has(Kind::KNOWN) as usize;
        opcode += 1;
    }
    built
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

/// Whether a ring that is polled takes it (IORING_SETUP_IOPOLL).
pub fn can_poll(opcode: u8) -> bool {
    let others = [op::NOP, op::PROVIDE_BUFFERS, op::REMOVE_BUFFERS, op::FILES_UPDATE, op::MSG_RING];
    is_rw(opcode) || others.contains(&opcode)
}

/// Whether it can take a provided buffer.
pub fn can_select(opcode: u8) -> bool {
    kind(opcode).has(Kind::SELECTS)
}

/// Whether it sends bytes that need not be copied.
pub fn is_zero_copy(opcode: u8) -> bool {
    matches!(opcode, op::SEND_ZC | op::SENDMSG_ZC)
}

/// Whether such a one can be sent as it says.
pub fn has_good_zc_flags(sqe: &Sqe) -> bool {
    let is_message = sqe.opcode == op::SENDMSG_ZC;
    let fixed = if is_message { 0 } else { FIXED_BUF };
    let has_name = is_message && (sqe.off != 0 || sqe.file_index != 0);
    sqe.ioprio & !(POLL_FIRST | fixed | REPORT_USAGE) == 0 && !has_name
}

/// Whether its bytes lie in a registered buffer.
#[inline]
pub fn is_fixed(sqe: &Sqe) -> bool {
    match sqe.opcode {
        op::READ_FIXED | op::WRITE_FIXED => true,
        op::SEND_ZC => sqe.ioprio & FIXED_BUF != 0,
        _ => false,
    }
}

/// Why the entry cannot be carried out at all, in Linux's order.
#[inline]
pub fn check(sqe: &Sqe, is_person: impl FnOnce(u16) -> bool) -> Result<()> {
    const PLAIN: u8 = !(flag::KNOWN & !(flag::BUFFER_SELECT | flag::FIXED_FILE));
    let kind = kind(sqe.opcode);
    if !kind.has(Kind::KNOWN) {
        return Err(Errno::EINVAL);
    }
    if u16::from(sqe.flags & PLAIN) | sqe.ioprio | sqe.personality != 0 {
        return check_rare(sqe, kind, is_person);
    }
    if kind.has(Kind::ANY_FIELDS) { Ok(()) } else { check_fields(sqe) }
}

/// As [`check`], for what few entries say.
#[cold]
fn check_rare(sqe: &Sqe, kind: Kind, is_person: impl FnOnce(u16) -> bool) -> Result<()> {
    if sqe.flags & !flag::KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    if sqe.flags & flag::BUFFER_SELECT != 0 && !kind.has(Kind::SELECTS) {
        return Err(Errno::EOPNOTSUPP);
    }
    let is_stranger = sqe.personality != 0 && !is_person(sqe.personality);
    if sqe.ioprio != 0 && !kind.has(Kind::TRANSFER) || is_stranger {
        return Err(Errno::EINVAL);
    }
    if is_rw(sqe.opcode) {
        // Here it is the priority of the transfer, and not flags.
        check_priority(u32::from(sqe.ioprio))?;
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
        op::FIXED_FD_INSTALL => check_install(sqe),
        _ if has_good_fields(sqe) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether a completion need not be its last.
pub fn is_multishot(sqe: &Sqe) -> bool {
    match sqe.opcode {
        op::RECV | op::RECVMSG => sqe.ioprio & RECV_MULTISHOT != 0,
        op::ACCEPT => sqe.ioprio & ACCEPT_MULTISHOT != 0,
        _ => false,
    }
}

/// Whether flags of `open` or of a socket's type ask for what a file without a descriptor cannot have.
fn has_cloexec(flags: u32) -> bool {
    flags & OpenFlags::CLOEXEC.bits() != 0
}

/// FIXED_FD_INSTALL, in Linux's order: of a registered file, as who submits.
fn check_install(sqe: &Sqe) -> Result<()> {
    let Sqe { off, addr, len, buf_index, file_index, addr3, .. } = *sqe;
    let is_clear = (off, addr, len, buf_index, file_index, addr3) == (0, 0, 0, 0, 0, 0);
    match sqe.flags & flag::FIXED_FILE {
        _ if !is_clear => Err(Errno::EINVAL),
        0 => Err(Errno::EBADF),
        _ if sqe.op_flags & !INSTALL_NO_CLOEXEC != 0 => Err(Errno::EINVAL),
        _ if sqe.personality != 0 => Err(Errno::EPERM),
        _ => Ok(()),
    }
}

#[inline]
fn has_good_fields(sqe: &Sqe) -> bool {
    let none = |fields: &[u64]| fields.iter().all(|&field| field == 0);
    let Sqe { off, addr, len, op_flags, buf_index, file_index, .. } = *sqe;
    let (len, flags, buf, index) =
        (u64::from(len), u64::from(op_flags), u64::from(buf_index), u64::from(file_index));
    match sqe.opcode {
        op::NOP => flags & !1 == 0,
        op::FSYNC => none(&[addr, buf, index]) && flags & !1 == 0,
        op::FALLOCATE => none(&[buf, flags, index]),
        op::OPENAT => buf == 0 && (index == 0 || !has_cloexec(op_flags)),
        op::OPENAT2 => buf == 0,
        op::CLOSE => none(&[off, addr, len, flags, buf]) && (index == 0 || sqe.fd == 0),
        op::STATX | op::MADVISE | op::FADVISE | op::EPOLL_CTL => none(&[buf, index]),
        op::SYNC_FILE_RANGE => none(&[addr, buf, index]),
        op::RENAMEAT | op::LINKAT => none(&[buf, index]),
        op::UNLINKAT => none(&[off, len, buf, index]) && op_flags & !AtFlags::REMOVEDIR.bits() == 0,
        op::MKDIRAT => none(&[off, flags, buf, index]),
        op::SYMLINKAT => none(&[len, flags, buf, index]),
        _ => has_good_net_fields(sqe),
    }
}

/// As [`has_good_fields`], for sockets, and for what waits for something else.
fn has_good_net_fields(sqe: &Sqe) -> bool {
    let none = |fields: &[u64]| fields.iter().all(|&field| field == 0);
    let Sqe { off, addr, len, op_flags, buf_index, file_index, addr3, .. } = *sqe;
    let (len, flags, buf, index) =
        (u64::from(len), u64::from(op_flags), u64::from(buf_index), u64::from(file_index));
    match sqe.opcode {
        op::SHUTDOWN => none(&[off, addr, flags, buf, index]),
        op::SOCKET => {
            let known = SOCK_TYPE_MASK | (OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits();
            none(&[addr, flags, buf])
                && off as u32 & !known == 0
                && (index == 0 || !has_cloexec(off as u32))
        }
        op::FTRUNCATE => none(&[flags, addr, len, buf, index, addr3]),
        op::BIND => none(&[len, flags, buf, index]),
        op::LISTEN => none(&[off, addr, flags, buf, index]),
        // A length is a number with a sign there.
        op::SEND | op::RECV | op::SENDMSG | op::RECVMSG if sqe.len.cast_signed() < 0 => false,
        op::RECV | op::RECVMSG if is_multishot(sqe) => {
            none(&[index, off])
                && (len == 0 || sqe.opcode == op::RECVMSG)
                && sqe.ioprio & !(POLL_FIRST | RECV_MULTISHOT) == 0
                && sqe.flags & flag::BUFFER_SELECT != 0
                && op_flags & WAITALL == 0
        }
        op::SEND => none(&[index >> 16]) && sqe.ioprio & !POLL_FIRST == 0,
        op::SEND_ZC => {
            none(&[index >> 16, addr3, sqe.pad])
                && (sqe.ioprio & FIXED_BUF != 0 || buf == 0)
                && sqe.flags & flag::CQE_SKIP_SUCCESS == 0
        }
        op::SENDMSG_ZC => none(&[addr3, sqe.pad]) && sqe.flags & flag::CQE_SKIP_SUCCESS == 0,
        op::SPLICE => op_flags & !(FD_IN_FIXED | SPLICE_FLAGS) == 0,
        op::TEE => none(&[addr, off]) && op_flags & !(FD_IN_FIXED | SPLICE_FLAGS) == 0,
        op::MSG_RING => none(&[buf, u64::from(sqe.personality)]) && flags & !3 == 0,
        op::FILES_UPDATE => none(&[flags, index]) && len != 0,
        op::WAITID => none(&[addr, buf, addr3, flags]),
        op::FUTEX_WAIT | op::FUTEX_WAKE => none(&[len, flags, buf, index]) && check_futex(sqe),
        op::RECV | op::SENDMSG | op::RECVMSG => {
            none(&[index, off]) && sqe.ioprio & !POLL_FIRST == 0
        }
        op::ACCEPT => {
            let is_any = index == 0 || file_index == u32::MAX;
            none(&[len, buf])
                && (index == 0 || !has_cloexec(op_flags))
                && (is_any || !is_multishot(sqe))
                && sqe.ioprio & !(ACCEPT_MULTISHOT | ACCEPT_DONTWAIT | POLL_FIRST << 2) == 0
                && op_flags & !(OpenFlags::CLOEXEC | OpenFlags::NONBLOCK).bits() == 0
        }
        _ => has_good_time_fields(sqe),
    }
}

/// As [`has_good_fields`], for polls, timeouts and what ends them.
fn has_good_time_fields(sqe: &Sqe) -> bool {
    let none = |fields: &[u64]| fields.iter().all(|&field| field == 0);
    let Sqe { off, addr, len, op_flags, buf_index, file_index, .. } = *sqe;
    let (flags, buf, index) = (u64::from(op_flags), u64::from(buf_index), u64::from(file_index));
    let len = u64::from(len);
    match sqe.opcode {
        // MULTI, which tells of each event and so is never silent.
        op::POLL_ADD => {
            none(&[off, addr, buf])
                && len & !1 == 0
                && (len == 0 || sqe.flags & flag::CQE_SKIP_SUCCESS == 0)
        }
        op::POLL_REMOVE => {
            let has = |bit: u32| sqe.len & bit != 0;
            none(&[buf, index])
                && sqe.len & !(MULTI | UPDATE_EVENTS | UPDATE_USER_DATA) == 0
                && sqe.len != MULTI
                && (has(UPDATE_USER_DATA) || off == 0)
                && (has(UPDATE_EVENTS) || flags == 0)
        }
        // ABS, a clock, ETIME_SUCCESS and MULTISHOT, which cannot be ABS.
        op::TIMEOUT => {
            none(&[buf, index])
                && len == 1
                && flags & !0x6d == 0
                && flags & 0xc != 0xc
                && flags & 0x41 != 0x41
        }
        op::LINK_TIMEOUT => {
            none(&[off, buf, index]) && len == 1 && flags & !0xd == 0 && flags & 0xc != 0xc
        }
        op::TIMEOUT_REMOVE => {
            let updates = TIMEOUT_UPDATE | LINK_TIMEOUT_UPDATE;
            none(&[len, buf, index])
                && (op_flags == 0 || op_flags & updates != 0 && op_flags & !(updates | 1) == 0)
        }
        op::ASYNC_CANCEL => {
            let (with, any) = (cancel::FD | cancel::OP, cancel::ANY);
            none(&[off, index])
                && op_flags & !cancel::KNOWN == 0
                && (op_flags & with == 0 || op_flags & any == 0)
        }
        op::CONNECT => none(&[len, buf, flags, index]) && sqe.ioprio == 0,
        _ => true,
    }
}

/// Whether the entry's flags name a futex that is shared: EINVAL for none that is built.
pub fn is_shared(sqe: &Sqe) -> Result<bool> {
    match sqe.fd.cast_unsigned() {
        flags if flags & !FUTEX_PRIVATE == FUTEX_U32 => Ok(flags & FUTEX_PRIVATE == 0),
        _ => Err(Errno::EINVAL),
    }
}

/// Why a futex cannot be waited at or woken with these: a value of 32 bits, a set that some bit of is one.
pub fn futex_words(sqe: &Sqe) -> Result<(u32, u32)> {
    let word = |value: u64| u32::try_from(value).map_err(|_| Errno::EINVAL);
    Ok((word(sqe.off)?, word(sqe.addr3)?))
}

/// Whether the fields of FUTEX_WAIT and FUTEX_WAKE can be.
fn check_futex(sqe: &Sqe) -> bool {
    is_shared(sqe).is_ok() && futex_words(sqe).is_ok()
}

/// Whether it is a ring, the only file that is never passed.
pub fn is_ring(file: &OpenFile) -> bool {
    !file.ops().may_be_passed()
}

/// Whether a file's queue wakes others in turn: a ring's, or an epoll's.
pub fn is_nested(file: &OpenFile) -> bool {
    is_ring(file) || file.downcast::<Epoll>().is_some()
}

/// Where the time of a timeout is, or that which one that waits is to have; nowhere for one that is removed.
pub fn time_of(sqe: &Sqe) -> u64 {
    match sqe.opcode {
        op::TIMEOUT_REMOVE if sqe.op_flags & TIMEOUT_UPDATE == 0 => 0,
        op::TIMEOUT_REMOVE => sqe.off,
        _ => sqe.addr,
    }
}
