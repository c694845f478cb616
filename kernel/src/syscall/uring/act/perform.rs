//! Carrying out one request, by the functions that the system calls use.
//!
//! What moves bytes or connections never waits here: where it would, the outcome says so. What looks up names or changes files
//! does what the call does. Owns nothing. Locks: a ring's mutex is held by the caller.

use super::super::awaited;
use super::super::check::{FD_IN_FIXED, INSTALL_NO_CLOEXEC, is_transfer, time_of};
use super::super::files::{
    ReservedPlace, close_direct, put_direct, registered_file, update_registered,
};
use super::super::kept::Kept;
use super::super::outcome::{Done, Outcome, Wait};
use super::super::request::{Direct, Request};
use super::super::ring::{Ring, State};
use super::transfer::transfer;
use crate::mm::user::UserPtr;
use crate::sync::PollTable;
use crate::syscall::caller::{Pathname, file, file_to_keep};
use crate::syscall::event::epoll;
use crate::syscall::file::install::{install_shared, reserved};
use crate::syscall::file::{dir, fd, file as files, path};
use crate::syscall::mm;
use crate::syscall::net::socket;
use crate::syscall::time::{deadline_after, deadline_at};
use crate::time::ClockId;
use crate::vfs::open::OpenHow;
use crate::vfs::{OpenFile, PollEvents};
use abi::fs::OpenFlags;
use abi::uring::{Sqe, op, sqe as flag};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// Carries it out, as far as that can be done now.
pub fn perform(ring: &Ring, state: &mut State, request: &Request) -> Outcome {
    let sqe = &request.sqe;
    if is_transfer(sqe.opcode) {
        return match file_of(ring, sqe) {
            Ok(file) => transfer(ring, state, &file, request),
            Err(error) => Outcome::of(Err(error)),
        };
    }
    match sqe.opcode {
        op::POLL_ADD => return poll(ring, sqe),
        op::TIMEOUT => {
            return match deadline_of(request) {
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
        op::OPENAT | op::OPENAT2 => open(ring, state, sqe, request.kept.as_deref()),
        op::SOCKET => make_socket(ring, sqe),
        op::FIXED_FD_INSTALL => install_registered(ring, sqe),
        _ => change(sqe, request.kept.as_deref()).map(|()| 0),
    })
}

fn or_failed(begun: Result<Outcome>) -> Outcome {
    begun.unwrap_or_else(|error| Outcome::of(Err(error)))
}

fn move_between(ring: &Ring, sqe: &Sqe) -> Result<Outcome> {
    let number = sqe.file_index.cast_signed();
    let input = match sqe.op_flags & FD_IN_FIXED {
        0 => file_to_keep(number)?,
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
    if super::super::ring::of_file(&*file(sqe.fd)?).is_ok() {
        // A ring is not closed while it works.
        return Err(Errno::EBADF);
    }
    fd::close(sqe.fd).map(|()| 0)
}

fn open(ring: &Ring, state: &State, sqe: &Sqe, kept: Option<&Kept>) -> Result<i64> {
    let Sqe { fd, off, addr, len, op_flags: flags, .. } = *sqe;
    let how = match (sqe.opcode, kept) {
        (op::OPENAT, _) => OpenHow::classic(flags, len)?,
        (_, Some(Kept::Open(_, how))) => *how,
        _ => path::read_how(UserPtr::new(off), len as usize)?,
    };
    let [name, _] = paths([addr, 0], kept);
    // As on Linux, nothing is waited for: a fifo without writer can be read, one without reader is `ENXIO`.
    let open = || {
        let file = path::open_file(fd, name, &how.at_once())?;
        file.set_flags(OpenFlags::NONBLOCK, how.flags());
        Ok(file)
    };
    let cloexec = how.flags().contains(OpenFlags::CLOEXEC);
    let Some(place) = Direct::of(sqe.file_index) else {
        return reserved(cloexec, |_| open()).map(|fd| i64::from(fd.0));
    };
    if cloexec {
        return Err(Errno::EINVAL);
    }
    let place = match ReservedPlace::new(ring, place, state) {
        Ok(place) => place,
        Err(error) => {
            // As on Linux, what is wrong with the name is said first; but nothing is made or emptied for a place that is not there.
            let changes = OpenFlags::CREAT | OpenFlags::TRUNC | OpenFlags::TMPFILE_BIT;
            if !how.flags().intersects(changes) {
                open()?;
            }
            return Err(error);
        }
    };
    place.put(open()?)
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

/// The paths that an entry names, if it does not stand at once.
fn paths(at: [u64; 2], kept: Option<&Kept>) -> [Pathname<'_>; 2] {
    match kept {
        Some(Kept::Paths(both)) => both.each_ref().map(|path| Pathname::Read(path)),
        Some(Kept::Open(path, _)) => [Pathname::Read(path), Pathname::At(at[1])],
        _ => at.map(Pathname::At),
    }
}

/// What gives nothing but success.
fn change(sqe: &Sqe, kept: Option<&Kept>) -> Result<()> {
    let Sqe { fd, off, addr, len, op_flags: flags, .. } = *sqe;
    let [name, other] = paths([addr, off], kept);
    let length = |first: u64| if first == 0 { u64::from(len) } else { first };
    match sqe.opcode {
        op::FSYNC if flags & 1 != 0 => files::fdatasync(fd),
        op::FSYNC => files::fsync(fd),
        op::SYNC_FILE_RANGE => files::sync_file_range(fd, off.cast_signed(), i64::from(len), flags),
        op::FALLOCATE => files::fallocate_quietly(fd, len, off.cast_signed(), addr.cast_signed()),
        op::FTRUNCATE => files::ftruncate(fd, off.cast_signed()),
        op::FADVISE => files::fadvise64(fd, off.cast_signed(), length(addr).cast_signed(), flags),
        op::MADVISE => mm::madvise(addr, length(off), flags.cast_signed()),
        op::STATX => path::statx(fd, name, flags, len, UserPtr::new(off)),
        op::RENAMEAT => dir::renameat2(fd, name, len.cast_signed(), other, flags),
        op::UNLINKAT => dir::unlinkat(fd, name, flags),
        op::MKDIRAT => dir::mkdirat(fd, name, len),
        op::SYMLINKAT => dir::symlinkat(name, fd, other),
        op::LINKAT => dir::linkat(fd, name, len.cast_signed(), other, flags),
        op::SHUTDOWN => socket::shutdown(fd, len.cast_signed()),
        op::BIND => match kept {
            Some(Kept::Name(name)) => socket::bind_to(&*file(fd)?, name),
            _ => socket::bind(fd, addr, off as u32),
        },
        op::LISTEN => socket::listen(fd, len.cast_signed()),
        op::EPOLL_CTL => {
            let (what, of) = (len.cast_signed(), off.cast_signed() as i32);
            match kept {
                Some(Kept::Event(event)) => epoll::control(fd, what, of, *event),
                _ => epoll::epoll_ctl(fd, what, of, addr),
            }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn file_of(ring: &Ring, sqe: &Sqe) -> Result<Arc<OpenFile>> {
    if sqe.flags & flag::FIXED_FILE == 0 {
        return file_to_keep(sqe.fd);
    }
    registered_file(ring, sqe.fd)
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
pub fn deadline_of(request: &Request) -> Result<u64> {
    let sqe = &request.sqe;
    const ABS: u32 = 1;
    const BOOTTIME: u32 = 4;
    const REALTIME: u32 = 8;
    let clock = match sqe.op_flags & (BOOTTIME | REALTIME) {
        0 => ClockId::Monotonic,
        BOOTTIME => ClockId::Boottime,
        _ => ClockId::Realtime,
    };
    let time = match request.kept.as_deref() {
        Some(Kept::Time(time)) => *time,
        _ => UserPtr::new(time_of(sqe)).read()?,
    };
    if sqe.op_flags & ABS == 0 { deadline_after(time) } else { deadline_at(time, clock) }
}
