//! io_uring_register(2): what a ring is told once: files, buffers, whom to tell of completions, that it may begin; and what it can do.
//!
//! Owns nothing: what is registered is the ring's. Locks: the ring's mutex.

use super::buffers::register_ring;
use super::check::is_known;
use super::ring::{Bell, Ring, State, of_file};
use crate::fs::eventfd::EventFd;
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::user::UserPtr;
use crate::sync::Pace;
use crate::syscall::caller::{fd_limit, file};
use crate::vfs::OpenFile;
use abi::uring::{FilesUpdate, Probe, ProbeOp, op, register as what, setup};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Most files of a ring (IORING_MAX_FIXED_FILES).
const MOST_FILES: u32 = 1 << 20;

pub fn io_uring_register(fd: i32, opcode: u32, arg: u64, count: u32) -> Result<u32> {
    let is_known = matches!(
        opcode,
        what::BUFFERS
            ..=what::PROBE
                | what::ENABLE_RINGS
                | what::PBUF_RING
                | what::UNREGISTER_PBUF_RING
                | what::PBUF_STATUS
    );
    if !is_known {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    let ring = of_file(&file)?;
    let mut state = ring.state.lock();
    if state.submitter.is_some() {
        ring.check_submitter(&mut state)?;
    }
    if opcode == what::FILES_UPDATE {
        return update_files(&mut state, arg, count);
    }
    match opcode {
        what::BUFFERS => state.buffers.register(arg, count),
        what::UNREGISTER_BUFFERS if arg != 0 || count != 0 => Err(Errno::EINVAL),
        what::UNREGISTER_BUFFERS => state.buffers.unregister(),
        what::PBUF_RING | what::UNREGISTER_PBUF_RING | what::PBUF_STATUS => {
            register_ring(&mut state.buffers, opcode, arg, count)
        }
        what::PROBE => probe(arg, count),
        what::ENABLE_RINGS => enable(ring, &mut state, arg, count),
        what::EVENTFD => set_bell(&mut state, arg, count, false),
        what::EVENTFD_ASYNC => set_bell(&mut state, arg, count, true),
        what::UNREGISTER_EVENTFD if arg != 0 || count != 0 => Err(Errno::EINVAL),
        what::UNREGISTER_EVENTFD => state.bell.take().map(drop).ok_or(Errno::ENXIO),
        what::FILES => set_files(&mut state, arg, count),
        what::UNREGISTER_FILES if arg != 0 || count != 0 => Err(Errno::EINVAL),
        what::UNREGISTER_FILES if state.files.is_empty() => Err(Errno::ENXIO),
        what::UNREGISTER_FILES => {
            state.files = Vec::new();
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }?;
    Ok(0)
}

/// Which operations there are.
fn probe(arg: u64, count: u32) -> Result<()> {
    if arg == 0 || count > 256 {
        return Err(Errno::EINVAL);
    }
    let places = UserPtr::<ProbeOp>::new(arg.wrapping_add(size_of::<Probe>() as u64));
    let head = UserPtr::<Probe>::new(arg).read()?;
    let mut is_clear =
        head.last_op == 0 && head.ops_len == 0 && head.resv == 0 && head.resv2 == [0; 3];
    for nth in (0..count).paced() {
        let ProbeOp { op, resv, flags, resv2 } = places.index(u64::from(nth)).read()?;
        is_clear &= op == 0 && resv == 0 && flags == 0 && resv2 == 0;
    }
    if !is_clear {
        return Err(Errno::EINVAL);
    }
    let told = count.min(u32::from(op::LAST) + 1) as u8;
    for op in (0..told).paced() {
        let flags = if is_known(op) { what::SUPPORTED } else { 0 };
        places.index(u64::from(op)).write(&ProbeOp { op, flags, ..ProbeOp::default() })?;
    }
    UserPtr::new(arg).write(&Probe { last_op: op::LAST, ops_len: told, ..Probe::default() })
}

fn enable(ring: &Ring, state: &mut State, arg: u64, count: u32) -> Result<()> {
    if arg != 0 || count != 0 {
        return Err(Errno::EINVAL);
    }
    if ring.flags & setup::R_DISABLED == 0 || !ring.disabled.load(Ordering::Relaxed) {
        return Err(Errno::EBADFD);
    }
    ring.check_submitter(state)?;
    // Release: pairs with the Acquire of who enters.
    ring.disabled.store(false, Ordering::Release);
    Ok(())
}

fn set_bell(state: &mut State, arg: u64, count: u32, only_async: bool) -> Result<()> {
    if count != 1 {
        return Err(Errno::EINVAL);
    }
    if state.bell.is_some() {
        return Err(Errno::EBUSY);
    }
    let file = file(UserPtr::<i32>::new(arg).read()?)?;
    if file.downcast::<EventFd>().is_none() {
        return Err(Errno::EINVAL);
    }
    state.bell = Some(Bell { file, only_async });
    Ok(())
}

fn set_files(state: &mut State, arg: u64, count: u32) -> Result<()> {
    if !state.files.is_empty() {
        return Err(Errno::EBUSY);
    }
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > MOST_FILES || count as usize > fd_limit() {
        return Err(Errno::EMFILE);
    }
    let mut files = Vec::with_room(count as usize)?;
    for nth in (0..count).paced() {
        let fd = UserPtr::<i32>::new(arg).index(u64::from(nth)).read()?;
        files.try_push(to_register(fd)?)?;
    }
    state.files = files;
    Ok(())
}

/// The file to be registered; none for -1.
fn to_register(fd: i32) -> Result<Option<Arc<OpenFile>>> {
    if fd == -1 {
        return Ok(None);
    }
    let file = file(fd)?;
    // A ring could hold itself.
    if of_file(&file).is_ok() { Err(Errno::EBADF) } else { Ok(Some(file)) }
}

/// IORING_REGISTER_FILES_UPDATE: how many places it has gone through.
fn update_files(state: &mut State, arg: u64, count: u32) -> Result<u32> {
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    let FilesUpdate { offset, resv, fds } = UserPtr::new(arg).read()?;
    if resv != 0 {
        return Err(Errno::EINVAL);
    }
    let end = offset.checked_add(count).ok_or(Errno::EOVERFLOW)?;
    if state.files.is_empty() {
        return Err(Errno::ENXIO);
    }
    if end as usize > state.files.len() {
        return Err(Errno::EINVAL);
    }
    for nth in (0..count).paced() {
        let place = UserPtr::<i32>::new(fds).index(u64::from(nth));
        match place.read().and_then(|fd| update_file(state, (offset + nth) as usize, fd)) {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(error),
            Err(_) => return Ok(nth),
        }
    }
    Ok(count)
}

/// As on Linux, what was in the place is gone even if nothing can be put there.
fn update_file(state: &mut State, at: usize, fd: i32) -> Result<()> {
    const SKIP: i32 = -2;
    if fd != SKIP {
        state.files[at] = None;
        state.files[at] = to_register(fd)?;
    }
    Ok(())
}
