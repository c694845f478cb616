//! Changing what waits, and telling another ring: updates of timeouts and polls, and MSG_RING.
//!
//! Owns nothing. Locks: the ring's mutex is held by the caller; that of another ring is only tried, so that two cannot wait for each
//! other, and its inbox's is taken below.

use super::act::perform::deadline_of;
use super::check::{LINK_TIMEOUT_UPDATE, MULTI, UPDATE_EVENTS, UPDATE_USER_DATA};
use super::files::{put_direct, registered_file};
use super::parked::Parked;
use super::request::{Direct, Request};
use super::ring::{Ring, State, of_file};
use crate::syscall::caller::file;
use crate::vfs::PollEvents;
use abi::uring::{Cqe, Sqe, op};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Gives a timeout another time.
pub fn update_timeout(state: &mut State, request: &Request) -> Result<i64> {
    let at = deadline_of(request)?;
    let sqe = &request.sqe;
    let is_linked = sqe.op_flags & LINK_TIMEOUT_UPDATE != 0;
    let is_it = |parked: &Parked| match is_linked {
        false => {
            parked.request.sqe.opcode == op::TIMEOUT && parked.request.sqe.user_data == sqe.addr
        }
        true => parked.rest.front().is_some_and(|next| {
            next.sqe.opcode == op::LINK_TIMEOUT && next.sqe.user_data == sqe.addr
        }),
    };
    let found = state.parked.values_mut().find(|parked| is_it(parked) && !parked.is_late());
    found.ok_or(Errno::ENOENT)?.set_deadline(at).map(|()| 0)
}

/// Lets a poll wait for other events, or be called something else.
pub fn update_poll(state: &mut State, sqe: &Sqe) -> Result<i64> {
    let is_it = |parked: &Parked| {
        parked.request.sqe.opcode == op::POLL_ADD && parked.request.sqe.user_data == sqe.addr
    };
    let found = state.parked.values_mut().find(|parked| is_it(parked)).ok_or(Errno::ENOENT)?;
    let poll = &mut found.request.sqe;
    if sqe.len & UPDATE_USER_DATA != 0 {
        poll.user_data = sqe.off;
    }
    if sqe.len & UPDATE_EVENTS != 0 {
        poll.op_flags = sqe.op_flags;
        poll.len = sqe.len & MULTI;
        let wanted = PollEvents::from_bits_truncate(sqe.op_flags);
        found.set_wanted(wanted | PollEvents::ERR | PollEvents::HUP)?;
    }
    Ok(0)
}

/// IORING_MSG_RING_CQE_SKIP, IORING_MSG_RING_FLAGS_PASS.
const CQE_SKIP: u32 = 1;
const FLAGS_PASS: u32 = 2;
/// IORING_MSG_SEND_FD.
const SEND_FD: u64 = 1;

/// IORING_OP_MSG_RING: a completion for another ring, or for this.
pub fn tell(ring: &Ring, state: &mut State, sqe: &Sqe) -> Result<i64> {
    let target = file(sqe.fd)?;
    let target = of_file(&target).map_err(|_| Errno::EBADFD)?;
    if sqe.addr == SEND_FD {
        return send_file(ring, target, sqe);
    }
    let passes = sqe.op_flags & FLAGS_PASS != 0;
    let is_data = sqe.addr == 0 && sqe.addr3 == 0 && sqe.op_flags & !FLAGS_PASS == 0;
    if !is_data || !passes && sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    // Acquire: pairs with the Release of `ENABLE_RINGS`.
    if target.disabled.load(Ordering::Acquire) {
        return Err(Errno::EBADFD);
    }
    let flags = if passes { sqe.file_index } else { 0 };
    let cqe = Cqe { user_data: sqe.off, res: sqe.len.cast_signed(), flags };
    if core::ptr::eq(&raw const **target, ring) {
        ring.complete(state, cqe);
    } else {
        post(target, cqe)?;
    }
    Ok(0)
}

/// Puts a registered file among those of another ring, whose completion says so, unless it is to be silent.
fn send_file(ring: &Ring, target: &Arc<Ring>, sqe: &Sqe) -> Result<i64> {
    if sqe.len != 0 || core::ptr::eq(&raw const **target, ring) {
        return Err(Errno::EINVAL);
    }
    // Acquire: as in `tell`.
    if target.disabled.load(Ordering::Acquire) {
        return Err(Errno::EBADFD);
    }
    let file = registered_file(ring, (sqe.addr3 as u32).cast_signed())?;
    // As on Linux, 0 is no place.
    let place = Direct::of(sqe.file_index).unwrap_or(Direct::At(u32::MAX));
    let told = put_direct(target, place, file)?;
    if sqe.op_flags & CQE_SKIP == 0 {
        post(target, Cqe { user_data: sqe.off, res: told as i32, flags: 0 })?;
    }
    Ok(told)
}

/// Leaves a completion in a ring's inbox, which is emptied now, or by who goes on with it next.
fn post(target: &Arc<Ring>, cqe: Cqe) -> Result<()> {
    target.tower.inbox.lock().put(cqe)?;
    if let Some(mut state) = target.try_lock() {
        target.take_inbox(&mut state);
        target.finish_batch(&mut state);
        return Ok(());
    }
    target.tower.tell_work(true);
    target.tell_home();
    Ok(())
}
