//! io_uring_enter(2): submitting, and waiting for completions.
//!
//! Owns nothing. Locks: the ring's mutex while entries are taken, none while it waits for completions. An entry that is carried out as
//! a call may wait (an open of a fifo) with that mutex held: so who waits for it can be killed.

use super::again::retry;
use super::ring::{Ring, of_file};
use super::submit::{submit, submit_all};
use crate::mm::user::UserPtr;
use crate::process::task::later::act_now;
use crate::process::{self, signal};
use crate::sync::wait::{Deadline, WaitError};
use crate::syscall::caller::file;
use crate::syscall::event::poll::read_mask;
use crate::syscall::time::read_deadline;
use crate::syscall::time::read_timeout;
use crate::time::ClockId;
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
    if flags & !flag::KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let file = match flags & flag::REGISTERED_RING {
        0 => file(fd)?,
        _ => process::current().map(|task| &task.registered).ring(fd.cast_unsigned())?,
    };
    let ring: &Ring = of_file(&file)?;
    // Acquire: pairs with the Release of `ENABLE_RINGS`.
    if ring.disabled.load(Ordering::Acquire) {
        return Err(Errno::EBADFD);
    }
    let mut taken = 0;
    let is_plain = flags & (flag::GETEVENTS | flag::EXT_ARG) == flag::GETEVENTS && arg == 0;
    if ring.flags & setup::SQPOLL != 0 {
        taken = to_submit;
        if flags & flag::SQ_WAKEUP != 0 {
            submit_all(ring, &mut *ring.state.lock_killable()?);
        }
    } else if to_submit != 0 {
        let mut state = ring.state.lock_killable()?;
        ring.check_submitter(&mut state)?;
        taken = submit(ring, &mut state, to_submit);
        if taken != to_submit || is_plain && is_enough(ring, min_complete) {
            return Ok(taken);
        }
    }
    if flags & flag::GETEVENTS == 0 {
        return Ok(taken);
    }
    let waited = match ring.flags & (setup::IOPOLL | setup::SQPOLL) {
        // Nothing that this ring takes is polled for: all is complete.
        setup::IOPOLL => restore(ring).and_then(|()| go_on(ring)),
        _ => wait(ring, min_complete, flags, (arg, arg_size), taken != 0),
    };
    if taken != 0 { Ok(taken) } else { waited.map(|()| 0) }
}

/// Whether nothing is to be waited for, and nothing else is to be done or told.
#[inline(always)]
fn is_enough(ring: &Ring, least: u32) -> bool {
    ring.untaken() >= least && !ring.has_kept() && !ring.has_work() && !ring.is_orphan()
}

/// Until when to wait, and under which mask.
struct Patience {
    deadline: Option<Deadline>,
    mask: Option<SigSet>,
}

fn read_arg(flags: u32, arg: u64, size: usize) -> Result<Patience> {
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

fn wait(
    ring: &Ring,
    least: u32,
    flags: u32,
    (arg, arg_size): (u64, usize),
    has_submitted: bool,
) -> Result<()> {
    let Patience { deadline, mask } = read_arg(flags, arg, arg_size)?;
    if !has_submitted && ring.flags & setup::DEFER_TASKRUN != 0 {
        // Only who submits goes on with what waits.
        ring.check_is_submitter(&*ring.state.lock_killable()?)?;
    }
    restore(ring)?;
    let least = least.min(ring.shared().cq_entries());
    let timeouts = ring.timeouts();
    let done = || ring.untaken() >= least || ring.has_kept() || ring.timeouts() != timeouts;
    if least == 0 || done() {
        return go_on(ring);
    }
    let waited = signal::with_mask(mask, || wait_until(ring, deadline, &done));
    if ring.has_kept() {
        ring.restore(&mut *ring.state.lock_killable()?);
    }
    waited
}

/// Shows completions that were kept, as far as there is room: `EBADR` if some were lost.
fn restore(ring: &Ring) -> Result<()> {
    if ring.has_kept() {
        let mut state = ring.state.lock_killable()?;
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
        let mut state = ring.state.lock_killable()?;
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
