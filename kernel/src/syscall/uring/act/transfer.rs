//! Moving bytes and connections: what can be moved now, and how a request waits for the rest.
//!
//! Owns nothing. Never waits: where a call would, the outcome says so. Locks: a ring's mutex is held by the caller.

use super::super::check::{
    ACCEPT_DONTWAIT, WAITALL, has_good_zc_flags, is_fixed, is_multishot, is_rw, is_zero_copy,
};
use super::super::files::ReservedPlace;
use super::super::kept::Kept;
use super::super::outcome::{Done, Outcome, Wait, would_wait};
use super::super::request::{Direct, Request};
use super::super::ring::{Ring, State};
use super::message;
use super::plain;
use crate::mm::user::iov::{IoVec, copy_of, import_iovec};
use crate::mm::user::{UserPtr, UserSlice};
use crate::process;
use crate::syscall::file::file as files;
use crate::syscall::net::message::Name;
use crate::syscall::net::{sendrecv, socket};
use crate::vfs::{OpenFile, PollEvents};
use abi::uring::{CQE_BUFFER, CQE_BUFFER_SHIFT, CQE_MORE, Sqe, op, setup, sqe as flag};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `RWF_DSYNC`, `RWF_SYNC`: nothing to do for files in memory.
const HARMLESS: u32 = 2 | 4;
/// `RWF_NOWAIT`.
const NOWAIT: u32 = 8;
/// `MSG_DONTWAIT`.
const DONTWAIT: u32 = 0x40;

/// An entry that moves bytes or connections.
#[derive(Clone, Copy)]
struct Entry<'a> {
    sqe: &'a Sqe,
    /// Bytes that were moved already.
    before: u32,
    kept: Option<&'a Kept>,
}

/// Moves what can be moved now without waiting; one that goes on, again and again, with a completion for each.
pub fn transfer(
    ring: &Ring,
    state: &mut State,
    file: &Arc<OpenFile>,
    request: &Request,
) -> Outcome {
    let entry = Entry { sqe: &request.sqe, before: request.moved, kept: request.kept.as_deref() };
    let sqe = entry.sqe;
    if !is_multishot(sqe) {
        return transfer_with(ring, state, file, entry);
    }
    loop {
        let outcome = transfer_with(ring, state, file, entry);
        let Outcome::Done(done) = outcome else { return outcome };
        let goes_on = match sqe.opcode {
            op::ACCEPT => done.res >= 0,
            op::RECVMSG => done.flags & CQE_MORE != 0,
            _ => done.res > 0,
        };
        // As on Linux, who does not take completions is told that there will be no more.
        if !goes_on || !ring.has_room(state) {
            return Outcome::Done(Done { flags: done.flags & !CQE_MORE, ..done });
        }
        ring.complete(state, Done { flags: done.flags | CQE_MORE, ..done }.completion(sqe));
        crate::sync::cond_resched();
    }
}

/// As [`transfer_once`], with the buffer that the entry means.
fn transfer_with(
    ring: &Ring,
    state: &mut State,
    file: &Arc<OpenFile>,
    entry: Entry<'_>,
) -> Outcome {
    let Entry { sqe, kept, .. } = entry;
    if ring.flags & setup::IOPOLL != 0 {
        // Nothing is polled for.
        return Outcome::of(Err(Errno::EOPNOTSUPP));
    }
    if is_fixed(sqe)
        && let Err(error) = state.buffers.check_fixed(ring.is_mine(), sqe)
    {
        return Outcome::of(Err(error));
    }
    if sqe.flags & flag::BUFFER_SELECT == 0 {
        return transfer_once(ring, state, file, entry);
    }
    let of_group = || state.buffers.first(ring.is_mine(), sqe.buf_index);
    let (most, buffer) = match most_wanted(sqe, kept).and_then(|most| Ok((most, of_group()?))) {
        Ok(both) => both,
        Err(error) => return Outcome::of(Err(error)),
    };
    let len = if most == 0 { buffer.len } else { most.min(buffer.len) };
    let chosen = match sqe.opcode {
        // Its address is that of the header.
        op::RECVMSG => Sqe { addr3: buffer.addr, len, ..*sqe },
        op::READV => Sqe { opcode: op::READ, addr: buffer.addr, len, ..*sqe },
        _ => Sqe { addr: buffer.addr, len, ..*sqe },
    };
    let outcome = transfer_once(ring, state, file, Entry { sqe: &chosen, before: 0, kept });
    match outcome {
        // The end of a file takes a buffer, that of a stream does not.
        Outcome::Done(done) if done.res > 0 || done.res == 0 && is_rw(sqe.opcode) => {
            state.buffers.take_first(sqe.buf_index);
            let flags = CQE_BUFFER | u32::from(buffer.id) << CQE_BUFFER_SHIFT;
            Outcome::Done(Done { flags: done.flags | flags, ..done })
        }
        outcome => outcome,
    }
}

/// How much of a provided buffer the entry wants, nothing for all: READV says it in its vector, which has one element, RECVMSG in
/// its header.
fn most_wanted(sqe: &Sqe, kept: Option<&Kept>) -> Result<u32> {
    match (sqe.opcode, sqe.len) {
        (op::READV, 1) => {
            let len = match kept {
                Some(Kept::Buffers(buffers)) => buffers.first().map_or(0, |slice| slice.len as u64),
                _ => UserPtr::<[u64; 2]>::new(sqe.addr).read()?[1],
            };
            Ok(u32::try_from(len).unwrap_or(u32::MAX))
        }
        (op::READV, _) => Err(Errno::EINVAL),
        (op::RECVMSG, _) if !is_multishot(sqe) => message::wanted(&message::header_of(sqe, kept)?),
        (_, len) => Ok(len),
    }
}

/// Moves what can be moved now without waiting.
fn transfer_once(ring: &Ring, state: &State, file: &Arc<OpenFile>, entry: Entry<'_>) -> Outcome {
    let sqe = entry.sqe;
    let mut told = Told::default();
    let result = process::without_waiting(|| move_some(ring, state, file, entry, &mut told));
    let waits = matches!(result, Err(error) if would_wait(error));
    let is_patient = match sqe.opcode {
        op::ACCEPT => sqe.ioprio & ACCEPT_DONTWAIT == 0,
        op::CONNECT => true,
        opcode if is_rw(opcode) => sqe.op_flags & NOWAIT == 0,
        _ => sqe.op_flags & DONTWAIT == 0,
    };
    if waits && is_patient {
        let wanted = PollEvents::ERR | PollEvents::HUP | direction(sqe.opcode);
        return Outcome::Waits(Wait { file: Some(file.clone()), wanted, deadline: None, moved: 0 });
    }
    let result = if waits { Err(Errno::EAGAIN) } else { result };
    let is_short =
        matches!((&result, told.wanted), (Ok(moved), Some(wanted)) if (*moved as usize) < wanted);
    // At the end of a stream nothing moves.
    if let Ok(moved @ 1..) = result
        && is_short
        && goes_on(file, sqe)
    {
        let wanted = PollEvents::ERR | PollEvents::HUP | direction(sqe.opcode);
        let moved = u32::try_from(moved).unwrap_or(sqe.len);
        return Outcome::Waits(Wait { file: Some(file.clone()), wanted, deadline: None, moved });
    }
    let done = Done::of(result);
    // A second completion tells when the bytes may be used again.
    let flags = if is_zero_copy(sqe.opcode) || told.goes_on { CQE_MORE } else { 0 };
    Outcome::Done(Done { breaks_link: done.breaks_link || is_short, flags, ..done })
}

/// Whether a transfer that moved a part waits for the rest: on a connection, with MSG_WAITALL.
fn goes_on(file: &OpenFile, sqe: &Sqe) -> bool {
    sqe.flags & flag::BUFFER_SELECT == 0
        && sqe.op_flags & DONTWAIT == 0
        && waits_for_all(sqe)
        && sendrecv::is_connected_kind(file)
}

fn waits_for_all(sqe: &Sqe) -> bool {
    let opcodes = [op::RECV, op::SEND, op::SEND_ZC, op::RECVMSG, op::SENDMSG, op::SENDMSG_ZC];
    opcodes.contains(&sqe.opcode) && sqe.op_flags & WAITALL != 0
}

/// What a transfer waits for.
fn direction(opcode: u8) -> PollEvents {
    match opcode {
        op::WRITE | op::WRITEV | op::WRITE_FIXED => PollEvents::WRITABLE,
        op::SEND | op::SEND_ZC | op::SENDMSG | op::SENDMSG_ZC | op::CONNECT => PollEvents::WRITABLE,
        _ => PollEvents::READABLE | PollEvents::RDHUP,
    }
}

/// What a transfer says of itself beside what it moved.
#[derive(Default)]
struct Told {
    /// How many bytes, if fewer break a link.
    wanted: Option<usize>,
    /// RECVMSG of many messages received one, and not the end.
    goes_on: bool,
}

/// Moves what can be moved now, behind what was `before`.
fn move_some(
    ring: &Ring,
    state: &State,
    file: &Arc<OpenFile>,
    Entry { sqe, before, kept }: Entry<'_>,
    told: &mut Told,
) -> Result<i64> {
    let Sqe { off, addr, len, op_flags: flags, .. } = *sqe;
    if is_zero_copy(sqe.opcode) {
        check_zero_copy(file, sqe)?;
    }
    let skip = before as usize;
    let mut all = |(moved, size): sendrecv::Part| {
        told.wanted = (flags & WAITALL != 0).then_some(size);
        moved
    };
    let moved = match sqe.opcode {
        opcode if is_rw(opcode) => read_or_write(file, sqe, kept, &mut told.wanted)?,
        op::SEND | op::SEND_ZC => {
            let name = match kept {
                Some(Kept::Name(name)) => Name::Read(name),
                _ => Name::given(off, sqe.file_index),
            };
            let buffer = (addr, len as usize);
            all((sendrecv::send_buffer(file, buffer, name, flags)?, buffer.1))
        }
        op::RECV => all((sendrecv::receive_buffer(file, addr, len as usize, flags)?, len as usize)),
        op::SENDMSG | op::SENDMSG_ZC => all(match kept {
            Some(Kept::Message(message)) => message.send(file, flags, skip)?,
            _ => sendrecv::send_once(file, &UserPtr::new(addr).read()?, flags)?,
        }),
        op::RECVMSG if sqe.flags & flag::BUFFER_SELECT != 0 => {
            let buffer = UserSlice::new(sqe.addr3, len as usize);
            if is_multishot(sqe) {
                let (moved, is_message) = message::receive_framed(file, sqe, buffer)?;
                told.goes_on = is_message;
                moved
            } else {
                {
                    let header = message::header_of(sqe, kept)?;
                    all(message::receive_once(file, sqe, header, buffer)?)
                }
            }
        }
        op::RECVMSG => all(match kept {
            Some(Kept::Message(message)) => {
                message.receive(file, UserPtr::new(addr), flags, skip)?
            }
            _ => sendrecv::receive_once(file, UserPtr::new(addr), flags)?,
        }),
        op::ACCEPT => {
            let len = UserPtr::new(off);
            return match Direct::of(sqe.file_index) {
                None => socket::accept_of(file, addr, len, flags).map(i64::from),
                Some(place) => match ReservedPlace::new(ring, place, state) {
                    Ok(place) => place.put(socket::accept_file(file, addr, len, flags)?),
                    // Unlike on Linux, the connection stays in the queue.
                    Err(error) if socket::has_connection(file) => Err(error),
                    Err(_) => Err(socket::no_connection(file)),
                },
            };
        }
        _ => {
            let connected = match kept {
                Some(Kept::Name(name)) => socket::connect_to(file, name),
                _ => socket::connect_of(file, addr, off as u32),
            };
            return connected.map(|()| 0);
        }
    };
    Ok(moved as i64)
}

/// What a send that need not copy asks for is looked at once there is what tells of its bytes: it fails with two completions.
fn check_zero_copy(file: &OpenFile, sqe: &Sqe) -> Result<()> {
    if !has_good_zc_flags(sqe) {
        return Err(Errno::EINVAL);
    }
    sendrecv::check_zero_copy(file)
}

fn read_or_write(
    file: &OpenFile,
    sqe: &Sqe,
    kept: Option<&Kept>,
    wanted: &mut Option<usize>,
) -> Result<usize> {
    let reads = matches!(sqe.opcode, op::READ | op::READV | op::READ_FIXED);
    if !(if reads { file.readable() } else { file.writable() }) {
        return Err(Errno::EBADF);
    }
    if sqe.op_flags & !(HARMLESS | NOWAIT | 1) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if sqe.op_flags & 1 != 0 {
        // Nothing is polled for.
        return Err(Errno::EINVAL);
    }
    if !matches!(sqe.opcode, op::READV | op::WRITEV) {
        let buffer = plain::buffer(sqe)?;
        *wanted = Some(buffer.len);
        return plain::move_bytes(file, sqe, buffer, reads);
    }
    let mut slices = match kept {
        Some(Kept::Buffers(buffers)) => copy_of(buffers)?,
        _ => IoVec::new(),
    };
    if kept.is_none() {
        import_iovec(&mut slices, sqe.addr, sqe.len as usize)?;
    }
    *wanted = Some(slices.iter().fold(0, |sum, slice| sum + slice.len));
    let pos = plain::position(file, sqe)?;
    if reads {
        files::read_buffers(file, &slices, pos)
    } else {
        files::write_buffers(file, &mut slices, pos)
    }
}
