//! Carrying out one request, by the functions that the system calls use.
//!
//! What moves bytes or connections never waits here: where it would, the outcome says so. What looks up names or changes files
//! does what the call does. Owns nothing. Locks: a ring's mutex is held by the caller.

use super::awaited;
use super::check::{
    ACCEPT_DONTWAIT, FD_IN_FIXED, INSTALL_NO_CLOEXEC, WAITALL, has_good_zc_flags, is_fixed,
    is_multishot, is_rw, is_transfer,
};
use super::files::{ReservedPlace, close_direct, put_direct, registered_file, update_registered};
use super::message;
use super::outcome::{Done, Outcome, Wait, would_wait};
use super::plain;
use super::request::Direct;
use super::ring::{Ring, State};
use crate::mm::user::iov::{IoVec, import_iovec};
use crate::mm::user::{UserPtr, UserSlice};
use crate::process;
use crate::sync::PollTable;
use crate::syscall::caller::file;
use crate::syscall::event::epoll;
use crate::syscall::file::install::install_shared;
use crate::syscall::file::{dir, fd, file as files, path};
use crate::syscall::mm;
use crate::syscall::net::{sendrecv, socket};
use crate::syscall::time::{read_deadline, read_timeout};
use crate::time::ClockId;
use crate::vfs::open::OpenHow;
use crate::vfs::{OpenFile, PollEvents};
use abi::fs::OpenFlags;
use abi::uring::{CQE_BUFFER, CQE_BUFFER_SHIFT, CQE_MORE, Sqe, op, setup, sqe as flag};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// Carries it out, as far as that can be done now.
pub fn perform(ring: &Ring, state: &mut State, sqe: &Sqe) -> Outcome {
    if is_transfer(sqe.opcode) {
        return match file_of(ring, sqe) {
            Ok(file) => transfer(ring, state, &file, sqe, 0),
            Err(error) => Outcome::of(Err(error)),
        };
    }
    match sqe.opcode {
        op::POLL_ADD => return poll(ring, sqe),
        op::TIMEOUT => {
            return match deadline_of(sqe) {
                Ok(at) => Outcome::Waits(Wait {
                    file: None,
                    wanted: PollEvents::empty(),
                    deadline: Some(at),
                    moved: 0,
                }),
                Err(error) => Outcome::of(Err(error)),
            };
        }
        // What it is linked to is complete, or there is none.
        op::NOP => return nop(sqe),
        op::LINK_TIMEOUT => return Outcome::of(Err(Errno::EINVAL)),
        _ => {}
    }
    Outcome::of(match sqe.opcode {
        op::SPLICE | op::TEE => return or_failed(move_between(ring, sqe)),
        op::FUTEX_WAIT => return or_failed(awaited::wait_at_futex(sqe)),
        op::WAITID => return or_failed(awaited::wait_for_child(sqe)),
        op::FUTEX_WAKE => awaited::wake_futex(sqe),
        op::FILES_UPDATE => update_registered(ring, sqe.addr, sqe.off, sqe.len),
        op::PROVIDE_BUFFERS => state.buffers.provide(sqe).map(|()| 0),
        op::REMOVE_BUFFERS => state.buffers.remove(sqe.buf_index, sqe.fd.unsigned_abs() as usize),
        op::CLOSE => close(ring, sqe),
        op::OPENAT | op::OPENAT2 => open(ring, state, sqe),
        op::SOCKET => make_socket(ring, sqe),
        op::FIXED_FD_INSTALL => install_registered(ring, sqe),
        _ => change(sqe).map(|()| 0),
    })
}

fn or_failed(begun: Result<Outcome>) -> Outcome {
    begun.unwrap_or_else(|error| Outcome::of(Err(error)))
}

fn move_between(ring: &Ring, sqe: &Sqe) -> Result<Outcome> {
    let number = sqe.file_index.cast_signed();
    let input = match sqe.op_flags & FD_IN_FIXED {
        0 => file(number)?,
        _ => registered_file(ring, number)?,
    };
    let output = file_of(ring, sqe)?;
    awaited::move_between(input, output, sqe)
}

/// IORING_OP_NOP, which may say what its completion is to say.
#[inline]
pub fn nop(sqe: &Sqe) -> Outcome {
    const INJECT_RESULT: u32 = 1;
    let res = if sqe.op_flags & INJECT_RESULT == 0 { 0 } else { sqe.len.cast_signed() };
    Outcome::Done(Done { res, flags: 0, breaks_link: res < 0 })
}

fn close(ring: &Ring, sqe: &Sqe) -> Result<i64> {
    if let Some(at) = sqe.file_index.checked_sub(1) {
        return close_direct(ring, at).map(|()| 0);
    }
    if super::ring::of_file(&*file(sqe.fd)?).is_ok() {
        // A ring is not closed while it works.
        return Err(Errno::EBADF);
    }
    fd::close(sqe.fd).map(|()| 0)
}

fn open(ring: &Ring, state: &State, sqe: &Sqe) -> Result<i64> {
    let Sqe { fd, off, addr, len, op_flags: flags, .. } = *sqe;
    let how = match sqe.opcode {
        op::OPENAT => OpenHow::classic(flags, len)?,
        _ => path::read_how(UserPtr::new(off), len as usize)?,
    };
    let Some(place) = Direct::of(sqe.file_index) else {
        return path::open_how(fd, addr, &how).map(i64::from);
    };
    if how.flags().contains(OpenFlags::CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let place = match ReservedPlace::new(ring, place, state) {
        Ok(place) => place,
        Err(error) => {
            // As on Linux, what is wrong with the name is said first; but nothing is made or emptied for a place that is not there.
            let changes = OpenFlags::CREAT | OpenFlags::TRUNC | OpenFlags::TMPFILE_BIT;
            if !how.flags().intersects(changes) {
                path::open_file(fd, addr, &how)?;
            }
            return Err(error);
        }
    };
    place.put(path::open_file(fd, addr, &how)?)
}

fn make_socket(ring: &Ring, sqe: &Sqe) -> Result<i64> {
    let (family, kind, protocol) = (sqe.fd, sqe.off as u32, sqe.len.cast_signed());
    match Direct::of(sqe.file_index) {
        None => socket::socket(family, kind, protocol).map(i64::from),
        Some(place) => put_direct(ring, place, socket::make(family, kind, protocol)?),
    }
}

/// IORING_OP_FIXED_FD_INSTALL: gives a registered file a descriptor.
fn install_registered(ring: &Ring, sqe: &Sqe) -> Result<i64> {
    let file = registered_file(ring, sqe.fd)?;
    let cloexec = sqe.op_flags & INSTALL_NO_CLOEXEC == 0;
    install_shared(file, cloexec).map(|fd| i64::from(fd.0))
}

/// What gives nothing but success.
fn change(sqe: &Sqe) -> Result<()> {
    let Sqe { fd, off, addr, len, op_flags: flags, .. } = *sqe;
    let length = |first: u64| if first == 0 { u64::from(len) } else { first };
    match sqe.opcode {
        op::FSYNC if flags & 1 != 0 => files::fdatasync(fd),
        op::FSYNC => files::fsync(fd),
        op::SYNC_FILE_RANGE => files::sync_file_range(fd, off.cast_signed(), i64::from(len), flags),
        op::FALLOCATE => files::fallocate_quietly(fd, len, off.cast_signed(), addr.cast_signed()),
        op::FTRUNCATE => files::ftruncate(fd, off.cast_signed()),
        op::FADVISE => files::fadvise64(fd, off.cast_signed(), length(addr).cast_signed(), flags),
        op::MADVISE => mm::madvise(addr, length(off), flags.cast_signed()),
        op::STATX => path::statx(fd, addr, flags, len, UserPtr::new(off)),
        op::RENAMEAT => dir::renameat2(fd, addr, len.cast_signed(), off, flags),
        op::UNLINKAT => dir::unlinkat(fd, addr, flags),
        op::MKDIRAT => dir::mkdirat(fd, addr, len),
        op::SYMLINKAT => dir::symlinkat(addr, fd, off),
        op::LINKAT => dir::linkat(fd, addr, len.cast_signed(), off, flags),
        op::SHUTDOWN => socket::shutdown(fd, len.cast_signed()),
        op::BIND => socket::bind(fd, addr, off as u32),
        op::LISTEN => socket::listen(fd, len.cast_signed()),
        op::EPOLL_CTL => epoll::epoll_ctl(fd, len.cast_signed(), off.cast_signed() as i32, addr),
        _ => Err(Errno::EINVAL),
    }
}

fn file_of(ring: &Ring, sqe: &Sqe) -> Result<Arc<OpenFile>> {
    if sqe.flags & flag::FIXED_FILE == 0 {
        return file(sqe.fd);
    }
    registered_file(ring, sqe.fd)
}

/// `RWF_DSYNC`, `RWF_SYNC`: nothing to do for files in memory.
const HARMLESS: u32 = 2 | 4;
/// `RWF_NOWAIT`.
const NOWAIT: u32 = 8;
/// `MSG_DONTWAIT`.
const DONTWAIT: u32 = 0x40;

/// Moves what can be moved now without waiting; one that goes on, again and again, with a completion for each.
pub fn transfer(
    ring: &Ring,
    state: &mut State,
    file: &Arc<OpenFile>,
    sqe: &Sqe,
    moved: u32,
) -> Outcome {
    if !is_multishot(sqe) {
        return transfer_with(ring, state, file, sqe, moved);
    }
    loop {
        let outcome = transfer_with(ring, state, file, sqe, moved);
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
    sqe: &Sqe,
    moved: u32,
) -> Outcome {
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
        return transfer_once(ring, state, file, sqe, moved);
    }
    let of_group = || state.buffers.first(ring.is_mine(), sqe.buf_index);
    let (most, buffer) = match most_wanted(sqe).and_then(|most| Ok((most, of_group()?))) {
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
    let outcome = transfer_once(ring, state, file, &chosen, 0);
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
fn most_wanted(sqe: &Sqe) -> Result<u32> {
    match (sqe.opcode, sqe.len) {
        (op::READV, 1) => {
            let [_, len] = UserPtr::<[u64; 2]>::new(sqe.addr).read()?;
            Ok(u32::try_from(len).unwrap_or(u32::MAX))
        }
        (op::READV, _) => Err(Errno::EINVAL),
        (op::RECVMSG, _) if !is_multishot(sqe) => message::wanted(&UserPtr::new(sqe.addr).read()?),
        (_, len) => Ok(len),
    }
}

/// Moves what can be moved now without waiting.
fn transfer_once(
    ring: &Ring,
    state: &State,
    file: &Arc<OpenFile>,
    sqe: &Sqe,
    before: u32,
) -> Outcome {
    let mut told = Told::default();
    let result = process::without_waiting(|| move_some(ring, state, file, sqe, before, &mut told));
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
    // Of SEND_ZC a second completion tells when the bytes may be used again.
    let flags = if sqe.opcode == op::SEND_ZC || told.goes_on { CQE_MORE } else { 0 };
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
    let opcodes = [op::RECV, op::SEND, op::SEND_ZC, op::RECVMSG, op::SENDMSG];
    opcodes.contains(&sqe.opcode) && sqe.op_flags & WAITALL != 0
}

/// What a transfer waits for.
fn direction(opcode: u8) -> PollEvents {
    match opcode {
        op::WRITE | op::WRITEV | op::WRITE_FIXED => PollEvents::WRITABLE,
        op::SEND | op::SEND_ZC | op::SENDMSG | op::CONNECT => PollEvents::WRITABLE,
        _ => PollEvents::READABLE | PollEvents::RDHUP,
    }
}

/// IORING_OP_POLL_ADD. One that goes on is always parked, and looks at what is ready from there.
fn poll(ring: &Ring, sqe: &Sqe) -> Outcome {
    let file = match file_of(ring, sqe) {
        Ok(file) => file,
        Err(error) => return Outcome::of(Err(error)),
    };
    let wanted = PollEvents::from_bits_truncate(sqe.op_flags) | PollEvents::ERR | PollEvents::HUP;
    let ready = file.poll(&mut PollTable::look()) & wanted;
    if !ready.is_empty() && sqe.len == 0 {
        return Outcome::of(Ok(i64::from(ready.bits())));
    }
    match awaited::to_watch(file) {
        Ok(file) => Outcome::Waits(Wait { file: Some(file), wanted, deadline: None, moved: 0 }),
        Err(error) => Outcome::of(Err(error)),
    }
}

/// When a timeout ends.
pub fn deadline_of(sqe: &Sqe) -> Result<u64> {
    const ABS: u32 = 1;
    const BOOTTIME: u32 = 4;
    const REALTIME: u32 = 8;
    let clock = match sqe.op_flags & (BOOTTIME | REALTIME) {
        0 => ClockId::Monotonic,
        BOOTTIME => ClockId::Boottime,
        _ => ClockId::Realtime,
    };
    let time = UserPtr::new(sqe.addr);
    let at =
        if sqe.op_flags & ABS == 0 { read_timeout(time)? } else { read_deadline(time, clock)? };
    at.ok_or(Errno::EFAULT)
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
    sqe: &Sqe,
    before: u32,
    told: &mut Told,
) -> Result<i64> {
    let Sqe { off, addr, len, op_flags: flags, .. } = *sqe;
    let skip = before as usize;
    let mut all = |(moved, size): sendrecv::Part| {
        told.wanted = (flags & WAITALL != 0).then_some(size);
        moved
    };
    let moved = match sqe.opcode {
        opcode if is_rw(opcode) => read_or_write(file, sqe, &mut told.wanted)?,
        op::SEND | op::SEND_ZC => {
            let name = (off, sqe.file_index);
            let is_copied = sqe.opcode == op::SEND_ZC;
            if is_copied && !has_good_zc_flags(sqe) {
                return Err(Errno::EINVAL);
            }
            let buffer = (addr, len as usize);
            all((sendrecv::send_buffer(file, buffer, name, flags, is_copied)?, buffer.1))
        }
        op::RECV => all((sendrecv::receive_buffer(file, addr, len as usize, flags)?, len as usize)),
        op::SENDMSG => all(sendrecv::send_rest(file, &UserPtr::new(addr).read()?, flags, skip)?),
        op::RECVMSG if sqe.flags & flag::BUFFER_SELECT != 0 => {
            let buffer = UserSlice::new(sqe.addr3, len as usize);
            if is_multishot(sqe) {
                let (moved, is_message) = message::receive_framed(file, sqe, buffer)?;
                told.goes_on = is_message;
                moved
            } else {
                all(message::receive_once(file, sqe, buffer)?)
            }
        }
        op::RECVMSG => all(sendrecv::receive_rest(file, UserPtr::new(addr), flags, skip)?),
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
        _ => return socket::connect_of(file, addr, off as u32).map(|()| 0),
    };
    Ok(moved as i64)
}

fn read_or_write(file: &OpenFile, sqe: &Sqe, wanted: &mut Option<usize>) -> Result<usize> {
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
    let mut slices = IoVec::new();
    import_iovec(&mut slices, sqe.addr, sqe.len as usize)?;
    *wanted = Some(slices.iter().fold(0, |sum, slice| sum + slice.len));
    let pos = plain::position(file, sqe)?;
    if reads {
        files::read_buffers(file, &slices, pos)
    } else {
        files::write_buffers(file, &mut slices, pos)
    }
}
