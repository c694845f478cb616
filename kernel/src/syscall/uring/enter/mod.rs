//! io_uring_enter(2): submitting, and waiting for completions. Plain entries of a [`calm`] ring go the shortest way; [`mod@file`] is what
//! a ring's file does.
//!
//! Owns nothing. Locks: the ring's mutex while entries are taken, none while it waits for completions. An entry that is carried out as
//! a call may sleep with that mutex held (a fault, a lock of a file): so who waits for it can be killed.

mod calm;
mod file;

use super::again::retry;
use super::ring::Ring;
use super::submit::{submit, submit_all};
use crate::mm::user::UserPtr;
use crate::process::task::later::act_now;
use crate::process::{self, signal};
use crate::sync::Borrowed;
use crate::sync::wait::{Deadline, WaitError};
use crate::syscall::caller::file;
use crate::syscall::event::poll::read_mask;
use crate::syscall::time::read_deadline;
use crate::syscall::time::read_timeout;
use crate::time::ClockId;
use crate::vfs::FileBorrow;
use abi::signal::SigSet;
use abi::uring::{GetEvents, enter as flag, setup};
use abi::{Errno, Result};
use core::sync::atomic::Ordering;

pub fn io_uring_enter(
    fd: i32,
    to_submit: u32,
    min_complete: u32,
    flags: u32,
    arg: u64,
    arg_size: usize,
) -> Result<u32> {
    const PLAIN: u32 = flag::KNOWN & !flag::REGISTERED_RING;
    let file = if flags & !PLAIN == 0 { file(fd)? } else { own_ring(fd, flags)? };
    file.ops().enter_ring(to_submit, min_complete, flags, arg, arg_size)
}

/// A ring by the number that the task has registered it with, as these flags say.
#[cold]
fn own_ring(number: i32, flags: u32) -> Result<FileBorrow> {
    if flags & !flag::KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let rings = process::current().map(|task| &task.registered);
    rings.ring(number.cast_unsigned()).map(Borrowed::owned)
}

/// What completions a call waits for, and how.
struct Wanted {
    least: u32,
    flags: u32,
    arg: (u64, usize),
}

/// As the call, once the plain entries at the front are taken.
#[inline(never)]
fn go_on_entering(
    ring: &Ring,
    mut taken: u32,
    to_submit: u32,
    least: u32,
    flags: u32,
    arg: u64,
    arg_size: usize,
) -> Result<u32> {
    let wanted = Wanted { least, flags, arg: (arg, arg_size) };
    // Acquire: pairs with the Release of `ENABLE_RINGS`.
    if ring.disabled.load(Ordering::Acquire) {
        return Err(Errno::EBADFD);
    }
    if taken != 0 && taken == to_submit {
        go_on(ring)?;
    } else {
        taken += submit_any(ring, to_submit - taken, wanted.flags)?;
        if taken != to_submit {
            return Ok(taken);
        }
    }
    if wanted.flags & flag::GETEVENTS == 0 {
        return Ok(taken);
    }
    let waited = match ring.flags & (setup::IOPOLL | setup::SQPOLL) {
        // Nothing that this ring takes is polled for: all is complete.
        setup::IOPOLL => restore(ring).and_then(|()| go_on(ring)),
        _ => wait(ring, &wanted, taken != 0),
    };
    if taken != 0 { Ok(taken) } else { waited.map(|()| 0) }
}

/// Takes up to `count` entries of any kind: how many. Of a ring with `SQPOLL`, all that are there.
fn submit_any(ring: &Ring, count: u32, flags: u32) -> Result<u32> {
    if ring.flags & setup::SQPOLL != 0 {
        if flags & flag::SQ_WAKEUP != 0 {
            submit_all(ring, &mut *ring.lock()?);
        }
        return Ok(count);
    }
    if count == 0 {
        return Ok(0);
    }
    let mut state = ring.lock()?;
    ring.check_submitter(&mut state)?;
    Ok(submit(ring, &mut state, count))
}

/// Until when to wait, and under which mask.
struct Patience {
    deadline: Option<Deadline>,
    mask: Option<SigSet>,
}

fn read_arg(&Wanted { flags, arg: (arg, size), .. }: &Wanted) -> Result<Patience> {
    if flags & flag::EXT_ARG == 0 {
        let mask = read_mask(UserPtr::new(arg), size)?;
        return Ok(Patience { deadline: None, mask });
    }
    if size != size_of::<GetEvents>() {
        return Err(Errno::EINVAL);
    }
    let GetEvents { sigmask, sigmask_size, timeout, .. } = UserPtr::new(arg).read()?;
    let timeout = UserPtr::new(timeout);
    let deadline = match flags & flag::ABS_TIMER {
        0 => read_timeout(timeout)?,
        _ => read_deadline(timeout, ClockId::Monotonic)?,
    };
    let mask = read_mask(UserPtr::new(sigmask), sigmask_size as usize)?;
    Ok(Patience { deadline, mask })
}

fn wait(ring: &Ring, wanted: &Wanted, has_submitted: bool) -> Result<()> {
    let Patience { deadline, mask } = read_arg(wanted)?;
    if !has_submitted && ring.flags & setup::DEFER_TASKRUN != 0 {
        // Only who submits goes on with what waits.
        ring.check_is_submitter(&*ring.lock()?)?;
    }
    restore(ring)?;
    let least = wanted.least.min(ring.shared().cq_entries());
    let timeouts = ring.timeouts();
    let done = || ring.untaken() >= least || ring.has_kept() || ring.timeouts() != timeouts;
    if least == 0 || done() {
        return go_on(ring);
    }
    let waited = signal::with_mask(mask, || wait_until(ring, deadline, &done));
    if ring.has_kept() {
        ring.restore(&mut *ring.lock()?);
    }
    waited
}

/// Shows completions that were kept, as far as there is room: `EBADR` if some were lost.
fn restore(ring: &Ring) -> Result<()> {
    if ring.has_kept() {
        let mut state = ring.lock()?;
        ring.restore(&mut state);
        if core::mem::take(&mut state.has_lost) {
            return Err(Errno::EBADR);
        }
    }
    Ok(())
}

/// Carries on what was woken.
fn go_on(ring: &Ring) -> Result<()> {
    if ring.has_work() || ring.is_orphan() {
        let mut state = ring.lock()?;
        retry(ring, &mut state);
        ring.finish_batch(&mut state);
    }
    Ok(())
}

fn wait_until(ring: &Ring, deadline: Option<Deadline>, done: &dyn Fn() -> bool) -> Result<()> {
    let is_mine = ring.is_mine();
    loop {
        go_on(ring)?;
        if done() {
            return Ok(());
        }
        let woken = || (done() || ring.tower.has_work_for(is_mine)).then_some(());
        match ring.tower.waiters.wait_deadline(deadline, woken) {
            Ok(()) => {}
            Err(WaitError::Interrupted) if act_now() => {}
            Err(_) if ring.untaken() != 0 => return Ok(()),
            Err(WaitError::TimedOut) => return Err(Errno::ETIME),
            Err(WaitError::Interrupted) => return Err(Errno::EINTR),
        }
    }
}
