//! Reads and writes of one buffer: most of what programs ask a ring for. Those that say nothing else go the shortest way.
//!
//! What would have to wait, and what is special in any way, is left to [`super::perform`]. Owns nothing. Locks: as there.

use super::super::outcome::{Done, would_wait};
use super::super::ring::Ring;
use crate::mm::user::iov::MAX_RW_COUNT;
use crate::mm::user::{self, UserSlice};
use crate::process;
use crate::syscall::caller::file;
use crate::syscall::file::file as files;
use crate::vfs::OpenFile;
use abi::uring::{Sqe, op, setup};
use abi::{Errno, Result};

/// Does it, if it is plain and need not wait: what its completion says.
#[inline]
pub fn transfer(ring: &Ring, sqe: &Sqe) -> Option<i32> {
    let said = u32::from(sqe.flags) | u32::from(sqe.ioprio | sqe.personality) | sqe.op_flags;
    let is_plain = matches!(sqe.opcode, op::READ | op::WRITE) && said == 0;
    if !is_plain || ring.flags & setup::IOPOLL != 0 {
        return None;
    }
    let file = file(sqe.fd).ok()?;
    let reads = sqe.opcode == op::READ;
    if !(if reads { file.readable() } else { file.writable() }) {
        return None;
    }
    let buffer = buffer(sqe).ok()?;
    match process::without_waiting(|| move_bytes(&file, sqe, buffer, reads)) {
        Err(error) if would_wait(error) => None,
        Ok(moved) => Some(moved as i32),
        Err(error) => Some(Done::of(Err(error)).res),
    }
}

/// The buffer that the entry means.
#[inline]
pub fn buffer(sqe: &Sqe) -> Result<UserSlice> {
    let len = (sqe.len as usize).min(MAX_RW_COUNT);
    if user::in_range(sqe.addr, len) {
        Ok(UserSlice::new(sqe.addr, len))
    } else {
        Err(Errno::EFAULT)
    }
}

/// Where in the file; nothing for where it stands.
#[inline]
pub fn position(file: &OpenFile, sqe: &Sqe) -> Result<Option<u64>> {
    match sqe.off.cast_signed() {
        _ if !file.seekable() => Ok(None),
        -1 => Ok(None),
        pos => u64::try_from(pos).map(Some).map_err(|_| Errno::EINVAL),
    }
}

/// Reads or writes it.
#[inline]
pub fn move_bytes(file: &OpenFile, sqe: &Sqe, buffer: UserSlice, reads: bool) -> Result<usize> {
    let pos = position(file, sqe)?;
    if reads {
        files::read_buffer(file, buffer, pos)
    } else {
        files::write_buffer(file, buffer, pos)
    }
}
