//! Taking entries from a ring.
//!
//! Linux's order of failures: an entry that cannot be carried out ends the batch, but not in the middle of a link; then none
//! of the linked ones is carried out. Owns nothing. Locks: the ring's mutex is held by the caller.

use super::act::message;
use super::again::retry;
use super::carry::{begin, begin_one, refuse};
use super::check::{can_poll, check, is_fixed, is_multishot};
use super::request::Request;
use super::ring::{Ring, State};
use crate::sync::Pace;
use abi::uring::{Sqe, op, setup, sqe as flag};
use abi::{Errno, Result};
use zerocopy::FromZeros;

/// Takes up to `count` entries; how many it took.
#[inline]
pub fn submit(ring: &Ring, state: &mut State, count: u32) -> u32 {
    let taken = take(ring, state, count.min(ring.submitted(state)));
    ring.shared().front().set_sq_head(state.sq_head);
    retry(ring, state);
    ring.finish_batch(state);
    taken
}

/// Takes up to `count` entries, which are there.
fn take(ring: &Ring, state: &mut State, count: u32) -> u32 {
    let mut taken = 0;
    let mut request = Request { sqe: Sqe::new_zeroed(), refused: None, moved: 0, kept: None };
    for _ in (0..count).paced() {
        let is_there = ring.shared().read_entry(state.sq_head, &mut request.sqe);
        state.sq_head = state.sq_head.wrapping_add(1);
        if !is_there {
            state.dropped = state.dropped.wrapping_add(1);
            ring.shared().count_dropped(state.dropped);
            break;
        }
        taken += 1;
        request.refused = prepare(ring, state, &mut request.sqe).err();
        if !accept(ring, state, &request) && ring.flags & setup::SUBMIT_ALL == 0 {
            break;
        }
    }
    if state.chain.is_some()
        && let Some(chain) = state.chain.take()
    {
        begin(ring, state, chain);
    }
    taken
}

/// Takes all that are there now, as the thread of `SQPOLL` does once it is woken: one that is refused ends no batch.
pub fn submit_all(ring: &Ring, state: &mut State) {
    let mut left = ring.submitted(state);
    while left != 0 {
        let before = state.sq_head;
        submit(ring, state, left);
        match state.sq_head.wrapping_sub(before) {
            0 => return,
            went => left = left.saturating_sub(went),
        }
    }
}

#[inline]
fn prepare(ring: &Ring, state: &mut State, sqe: &mut Sqe) -> Result<()> {
    if let Some(restrictions) = &state.restricted {
        restrictions.check_entry(sqe)?;
    }
    check(sqe, |personality| state.personalities.contains_key(&personality))?;
    let is_polled_only = ring.flags & setup::IOPOLL != 0 && !can_poll(sqe.opcode);
    if is_polled_only || sqe.opcode == op::LINK_TIMEOUT && !has_subject(state) {
        return Err(Errno::EINVAL);
    }
    if is_fixed(sqe) {
        state.buffers.check_registered(sqe.buf_index)?;
    }
    if sqe.flags & (flag::CQE_SKIP_SUCCESS | flag::IO_DRAIN | flag::BUFFER_SELECT) == 0 {
        return Ok(());
    }
    if sqe.opcode == op::RECVMSG && is_multishot(sqe) {
        message::keep_header(sqe)?;
    }
    state.no_drain |= sqe.flags & flag::CQE_SKIP_SUCCESS != 0;
    if sqe.flags & flag::IO_DRAIN != 0 && state.no_drain {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(())
}

/// Whether there is something for a linked timeout: an entry of its link before it that is not a timeout itself.
fn has_subject(state: &State) -> bool {
    let last = state.chain.as_ref().and_then(|chain| chain.requests.back());
    last.is_some_and(|last| last.sqe.opcode != op::LINK_TIMEOUT)
}

/// Carries the request out, or lets it wait for its link; false if it ends the batch.
#[inline]
fn accept(ring: &Ring, state: &mut State, request: &Request) -> bool {
    let linked = request.is_linked();
    if !linked && state.chain.is_none() {
        let Some(error) = request.refused else { return begin_one(ring, state, request) };
        refuse(ring, state, request, error);
        return false;
    }
    let chain = state.chain.get_or_insert_default();
    let refused = match chain.add(request) {
        Ok(refused) => refused,
        Err(error) => {
            chain.is_refused = true;
            refuse(ring, state, request, error);
            request.refused
        }
    };
    if !linked && let Some(chain) = state.chain.take() {
        begin(ring, state, chain);
    }
    linked || refused.is_none()
}
