//! io_uring_register(2): what a ring is told once: files, buffers, whom to tell of completions, that it may begin; and what it can do.
//!
//! Owns nothing: what is registered is the ring's. Locks: the ring's mutex.

use super::carry::cancel_matching;
use super::check::is_known;
use super::files::register_files;
use super::handed::buffers::register_ring;
use super::restrict::Restrictions;
use super::ring::{Bell, Ring, State, of_file};
use crate::base::current::Current;
use crate::fs::eventfd::EventFd;
use crate::mm::fallible::TryMap;
use crate::mm::user::UserPtr;
use crate::process::{
    self,
    task::registered::{self, Registered},
};
use crate::sync::{Borrowed, Pace};
use crate::syscall::caller::{file, file_to_keep};
use abi::uring::{
    Probe, ProbeOp, Sqe, SyncCancel, Update, cancel as cancel_flag, op, register as what, setup,
};
use abi::{Errno, Result};
use core::sync::atomic::Ordering;

pub fn io_uring_register(fd: i32, opcode: u32, arg: u64, count: u32) -> Result<u32> {
    let is_registered = opcode & what::USE_REGISTERED_RING != 0;
    let opcode = opcode & !what::USE_REGISTERED_RING;
    if opcode >= what::END {
        return Err(Errno::EINVAL);
    }
    let file = match is_registered {
        false => file(fd)?,
        true => Borrowed::owned(own_rings().ring(fd.cast_unsigned())?),
    };
    let ring = of_file(&file)?;
    let mut state = ring.lock()?;
    if state.submitter.is_some() {
        ring.check_submitter(&mut state)?;
    }
    if let Some(restricted) = &state.restricted {
        restricted.check_register(opcode)?;
    }
    match opcode {
        what::FILES
        | what::UNREGISTER_FILES
        | what::FILES_UPDATE
        | what::FILES2
        | what::FILES_UPDATE2
        | what::FILE_ALLOC_RANGE => return register_files(ring, opcode, arg, count),
        what::PERSONALITY if arg == 0 && count == 0 => return add_personality(&mut state),
        what::RING_FDS => return add_rings(arg, count),
        what::UNREGISTER_RING_FDS => return remove_rings(arg, count),
        what::SYNC_CANCEL if arg != 0 && count == 1 => {
            return cancel_now(ring, &mut state, &UserPtr::new(arg).read()?);
        }
        _ => {}
    }
    match opcode {
        what::UNREGISTER_PERSONALITY if arg == 0 => {
            let gone = u16::try_from(count).ok().and_then(|id| state.personalities.remove(&id));
            gone.map(drop).ok_or(Errno::EINVAL)
        }
        what::RESTRICTIONS => restrict(ring, &mut state, arg, count),
        what::BUFFERS => state.buffers.register(arg, count),
        what::UNREGISTER_BUFFERS if arg != 0 || count != 0 => Err(Errno::EINVAL),
        what::UNREGISTER_BUFFERS => state.buffers.unregister(),
        what::PBUF_RING | what::UNREGISTER_PBUF_RING | what::PBUF_STATUS => {
            register_ring(&mut state.buffers, opcode, arg, count)
        }
        what::PROBE => probe(arg, count),
        what::ENABLE_RINGS => enable(ring, &mut state, arg, count),
        what::EVENTFD => set_bell(ring, &mut state, arg, count, false),
        what::EVENTFD_ASYNC => set_bell(ring, &mut state, arg, count, true),
        what::UNREGISTER_EVENTFD if arg != 0 || count != 0 => Err(Errno::EINVAL),
        what::UNREGISTER_EVENTFD => take_bell(ring, &mut state),
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
    state.restricted = state.restrictions;
    // Release: pairs with the Acquire of who enters.
    ring.disabled.store(false, Ordering::Release);
    Ok(())
}

fn restrict(ring: &Ring, state: &mut State, arg: u64, count: u32) -> Result<()> {
    // Relaxed: under the mutex, as who enables it.
    if !ring.disabled.load(Ordering::Relaxed) {
        return Err(Errno::EBADFD);
    }
    if state.restrictions.is_some() {
        return Err(Errno::EBUSY);
    }
    state.restrictions = Some(Restrictions::read(arg, count)?);
    Ok(())
}

/// Lets requests be carried out as who the caller is now; by which number.
fn add_personality(state: &mut State) -> Result<u32> {
    let is_free = |id: &u16| *id != 0 && !state.personalities.contains_key(id);
    let from = state.next_personality;
    let id = (0..=u16::MAX).map(|nth| from.wrapping_add(nth)).find(is_free).ok_or(Errno::EBUSY)?;
    state.personalities.try_put(id, process::current().cred_arc())?;
    state.next_personality = id.wrapping_add(1);
    Ok(u32::from(id))
}

fn own_rings() -> Current<Registered> {
    process::current().map(|task| &task.registered)
}

/// IORING_REGISTER_RING_FDS: numbers for rings that the thread uses often. How many it has done.
fn add_rings(arg: u64, count: u32) -> Result<u32> {
    each_update(arg, count, |place, mut update| {
        let wanted = match update.offset {
            u32::MAX => None,
            at if (at as usize) < registered::MOST => Some(at as usize),
            _ => return Err(Errno::EINVAL),
        };
        let file = file_to_keep(update.data as u32 as i32)?;
        of_file(&file)?;
        let at = own_rings().put(file, wanted)?;
        update.offset = at as u32;
        let written = place.write(&update);
        if written.is_err() {
            own_rings().remove(at);
        }
        written
    })
}

fn remove_rings(arg: u64, count: u32) -> Result<u32> {
    each_update(arg, count, |_, update| {
        if update.data != 0 || update.offset as usize >= registered::MOST {
            return Err(Errno::EINVAL);
        }
        own_rings().remove(update.offset as usize);
        Ok(())
    })
}

fn each_update(
    arg: u64,
    count: u32,
    mut act: impl FnMut(UserPtr<Update>, Update) -> Result<()>,
) -> Result<u32> {
    if count == 0 || count as usize > registered::MOST {
        return Err(Errno::EINVAL);
    }
    for nth in (0..count).paced() {
        let place = UserPtr::<Update>::new(arg).index(u64::from(nth));
        let done = place.read().and_then(|update| match update.resv {
            0 => act(place, update),
            _ => Err(Errno::EINVAL),
        });
        match done {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(error),
            Err(_) => return Ok(nth),
        }
    }
    Ok(count)
}

/// IORING_REGISTER_SYNC_CANCEL: as an entry that cancels. Nothing that is parked needs to be waited for.
fn cancel_now(ring: &Ring, state: &mut State, reg: &SyncCancel) -> Result<u32> {
    let SyncCancel { addr, fd, flags, opcode, pad, pad2, .. } = *reg;
    if flags & !cancel_flag::KNOWN != 0 || pad != [0; 7] || pad2 != [0; 3] {
        return Err(Errno::EINVAL);
    }
    let sqe = Sqe { addr, fd, op_flags: flags, len: u32::from(opcode), ..Sqe::default() };
    let found = cancel_matching(ring, state, &sqe);
    ring.finish_batch(state);
    found.map(|count| count as u32)
}

fn take_bell(ring: &Ring, state: &mut State) -> Result<()> {
    ring.tower.tells.store(false, Ordering::Relaxed);
    state.bell.take().map(drop).ok_or(Errno::ENXIO)
}

fn set_bell(ring: &Ring, state: &mut State, arg: u64, count: u32, only_async: bool) -> Result<()> {
    if count != 1 {
        return Err(Errno::EINVAL);
    }
    if state.bell.is_some() {
        return Err(Errno::EBUSY);
    }
    let file = file_to_keep(UserPtr::<i32>::new(arg).read()?)?;
    if file.downcast::<EventFd>().is_none() {
        return Err(Errno::EINVAL);
    }
    state.bell = Some(Bell { file, only_async });
    ring.tower.tells.store(!only_async, Ordering::Relaxed);
    Ok(())
}
