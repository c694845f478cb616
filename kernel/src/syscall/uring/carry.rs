//! Carrying requests out in order: links, requests that wait, what becomes of them when they are woken or cancelled.
//!
//! A request that would wait is parked with what is linked to it; a later [`retry`] goes on. A drained request, and all behind it,
//! stay back until nothing is parked. Owns nothing. Never sleeps for a request. Locks: the ring's mutex is held by the caller.

use super::parked::{Maker, Parked};
use super::perform::{Done, Outcome, Wait, deadline_of, nop, perform, transfer};
use super::request::{Chain, Request};
use super::ring::{Ring, State};
use crate::mm::fallible::{TryGrow, TryMap, try_box};
use crate::process;
use crate::sync::Pace;
use abi::uring::{CQE_MORE, Cqe, op, setup, sqe as flag};
use abi::{Errno, Result};
use alloc::collections::VecDeque;

/// IORING_POLL_ADD_MULTI.
const MULTI: u32 = 1;
/// IORING_TIMEOUT_ETIME_SUCCESS.
const ETIME_SUCCESS: u32 = 1 << 5;

/// Completes what is not carried out.
pub fn refuse(ring: &Ring, state: &mut State, request: &Request, error: Errno) {
    let res = error.to_return() as i32;
    ring.complete(state, Cqe { user_data: request.sqe.user_data, res, flags: 0 });
}

/// As [`refuse`], after the batch.
fn refuse_late(ring: &Ring, state: &mut State, request: &Request, error: Errno) {
    let res = error.to_return() as i32;
    ring.complete_late(state, Cqe { user_data: request.sqe.user_data, res, flags: 0 });
}

/// Begins a chain, or keeps it back until what was before is complete.
pub fn begin(ring: &Ring, state: &mut State, chain: Chain) {
    let stays_back = !state.deferred.is_empty() || chain.is_drained() && !state.parked.is_empty();
    if !stays_back {
        return run_chain(ring, state, chain);
    }
    let first = chain.requests.front().copied();
    if state.deferred.try_push(chain).is_err()
        && let Some(first) = first
    {
        refuse(ring, state, &first, Errno::ENOMEM);
    }
}

/// Begins a request that stands alone.
#[inline]
pub fn begin_one(ring: &Ring, state: &mut State, request: &Request) {
    if state.deferred.is_empty() && (!request.has(flag::IO_DRAIN) || state.parked.is_empty()) {
        run_alone(ring, state, request);
    } else {
        hold_back(ring, state, request);
    }
}

fn hold_back(ring: &Ring, state: &mut State, request: &Request) {
    let mut chain = Chain::default();
    match chain.add(*request) {
        Ok(()) => begin(ring, state, chain),
        Err(error) => refuse(ring, state, request, error),
    }
}

/// Begins what was kept back, as far as it may.
fn begin_deferred(ring: &Ring, state: &mut State) {
    loop {
        let stays_back = |chain: &Chain| chain.is_drained() && !state.parked.is_empty();
        if state.deferred.front().is_none_or(stays_back) {
            return;
        }
        let Some(chain) = state.deferred.pop_front() else { return };
        run_chain(ring, state, chain);
    }
}

fn run_chain(ring: &Ring, state: &mut State, mut chain: Chain) {
    let Some(first) = chain.requests.pop_front() else { return };
    if chain.is_refused {
        refuse(ring, state, &first, first.refused.unwrap_or(Errno::ECANCELED));
        cancel_rest(ring, state, &first, chain.requests);
    } else {
        run(ring, state, first, chain.requests);
    }
}

/// What is linked to a request that failed does not happen. Nobody is told if the request wanted no completion.
fn cancel_rest(ring: &Ring, state: &mut State, failed: &Request, rest: VecDeque<Request>) {
    if failed.has(flag::CQE_SKIP_SUCCESS) {
        return;
    }
    for request in rest.into_iter().paced() {
        refuse_late(ring, state, &request, request.refused.unwrap_or(Errno::ECANCELED));
    }
}

/// Carries a request out, and then what is linked to it, until one has to wait.
fn run(ring: &Ring, state: &mut State, mut request: Request, mut rest: VecDeque<Request>) {
    loop {
        let done = match carry(ring, state, &request) {
            Outcome::Done(done) => done,
            Outcome::Waits(wait) => match park(ring, state, request, &mut rest, wait) {
                Ok(()) => return,
                Err(error) => Done::of(Err(error)),
            },
        };
        match finish(ring, state, &request, rest, done) {
            Some((next, others)) => (request, rest) = (next, others),
            None => return,
        }
    }
}

/// As [`run`], with nothing linked to the request.
#[inline]
fn run_alone(ring: &Ring, state: &mut State, request: &Request) {
    let outcome = match request.sqe.opcode {
        op::NOP => nop(&request.sqe),
        _ => carry(ring, state, request),
    };
    let done = match outcome {
        Outcome::Done(done) => done,
        Outcome::Waits(wait) => match park(ring, state, *request, &mut VecDeque::new(), wait) {
            Ok(()) => return,
            Err(error) => Done::of(Err(error)),
        },
    };
    if done.breaks_link || !request.has(flag::CQE_SKIP_SUCCESS) {
        ring.complete(state, done.completion(&request.sqe));
    }
}

/// Completes a request: what comes next, if something does.
fn finish(
    ring: &Ring,
    state: &mut State,
    request: &Request,
    mut rest: VecDeque<Request>,
    done: Done,
) -> Option<(Request, VecDeque<Request>)> {
    if done.breaks_link || !request.has(flag::CQE_SKIP_SUCCESS) {
        ring.complete(state, done.completion(&request.sqe));
    }
    if rest.front().is_some_and(|next| next.sqe.opcode == op::LINK_TIMEOUT)
        && let Some(timeout) = rest.pop_front()
    {
        // It was in time.
        refuse_late(ring, state, &timeout, Errno::ECANCELED);
    }
    if done.breaks_link && !request.has(flag::IO_HARDLINK) {
        cancel_rest(ring, state, request, rest);
        return None;
    }
    rest.pop_front().map(|next| (next, rest))
}

fn carry(ring: &Ring, state: &mut State, request: &Request) -> Outcome {
    let sqe = &request.sqe;
    match sqe.opcode {
        op::POLL_REMOVE | op::TIMEOUT_REMOVE => {
            let kind = if sqe.opcode == op::POLL_REMOVE { op::POLL_ADD } else { op::TIMEOUT };
            let is_it = |parked: &Parked| {
                parked.request.sqe.opcode == kind && parked.request.sqe.user_data == sqe.addr
            };
            Outcome::of(match cancel(ring, state, 1, is_it) {
                0 => Err(Errno::ENOENT),
                _ => Ok(0),
            })
        }
        op::ASYNC_CANCEL => Outcome::of(cancel_matching(ring, state, request)),
        _ => perform(ring, state, sqe),
    }
}

/// IORING_OP_ASYNC_CANCEL: by what an entry said of itself, by its file, or all.
fn cancel_matching(ring: &Ring, state: &mut State, request: &Request) -> Result<i64> {
    const ALL: u32 = 1;
    const FD: u32 = 2;
    const ANY: u32 = 4;
    let sqe = &request.sqe;
    let flags = sqe.op_flags;
    let many = flags & (ALL | ANY) != 0;
    let most = if many { usize::MAX } else { 1 };
    let file = match flags & FD {
        0 => None,
        _ => Some(crate::syscall::caller::file(sqe.fd)?),
    };
    let is_it = |parked: &Parked| match &file {
        _ if flags & ANY != 0 => true,
        Some(file) => parked.file.as_ref().is_some_and(|of| alloc::sync::Arc::ptr_eq(of, file)),
        None => parked.request.sqe.user_data == sqe.addr,
    };
    match cancel(ring, state, most, is_it) {
        0 if !many => Err(Errno::ENOENT),
        count => Ok(if many { count as i64 } else { 0 }),
    }
}

/// Cancels up to `most` parked requests: how many it found.
fn cancel(ring: &Ring, state: &mut State, most: usize, is_it: impl Fn(&Parked) -> bool) -> usize {
    let (mut found, mut from) = (0, 0);
    while found < most {
        // Paced, as there may be ten thousand that are not it.
        let mut rest = state.parked.range(from..).paced();
        let at = rest.find(|(_, parked)| is_it(parked)).map(|(&at, _)| at);
        from = at.map_or(from, |at| at + 1);
        let Some(mut parked) = at.and_then(|at| state.parked.remove(&at)) else { break };
        found += 1;
        refuse_late(ring, state, &parked.request, Errno::ECANCELED);
        let rest = core::mem::take(&mut parked.rest);
        cancel_rest(ring, state, &parked.request, rest);
        crate::sync::cond_resched();
    }
    found
}

/// The running task; nobody under `DEFER_TASKRUN`, where only who enters the ring goes on.
fn maker_of(ring: &Ring) -> Option<Maker> {
    let soon = ring.flags & setup::COOP_TASKRUN == 0;
    let is_deferred = ring.flags & setup::DEFER_TASKRUN != 0;
    (!is_deferred).then(|| Maker { task: process::current_arc(), soon })
}

/// Lets a request wait, with what is linked to it.
fn park(
    ring: &Ring,
    state: &mut State,
    request: Request,
    rest: &mut VecDeque<Request>,
    wait: Wait,
) -> Result<()> {
    if !ring.is_mine() {
        return Err(Errno::EAGAIN);
    }
    let limit = match rest.front() {
        Some(next) if next.sqe.opcode == op::LINK_TIMEOUT => Some(deadline_of(&next.sqe)?),
        _ => None,
    };
    let deadline = wait.deadline.or(limit);
    let mut parked =
        Parked::new(&ring.tower, maker_of(ring), request, wait.file, wait.wanted, deadline)?;
    parked.rest = core::mem::take(rest);
    let at = state.next_parked;
    state.next_parked += 1;
    state.parked.try_put(at, try_box(parked)?)?;
    Ok(())
}

/// Looks again at the requests whose bells have rung.
#[inline]
pub fn retry(ring: &Ring, state: &mut State) {
    if ring.has_work() || !state.parked.is_empty() || !state.deferred.is_empty() {
        retry_parked(ring, state);
    }
}

fn retry_parked(ring: &Ring, state: &mut State) {
    if ring.has_work() && ring.is_mine() && ring.tower.take_rung() {
        let mut from = 0;
        loop {
            let mut rest = state.parked.range(from..);
            let Some(at) = rest.find(|(_, parked)| parked.take_rung()).map(|(&at, _)| at) else {
                break;
            };
            from = at + 1;
            look_again(ring, state, at);
            crate::sync::cond_resched();
        }
    } else if !state.parked.is_empty() && ring.is_orphan() {
        // Who submitted them is gone.
        cancel(ring, state, usize::MAX, |_| true);
    }
    begin_deferred(ring, state);
}

fn look_again(ring: &Ring, state: &mut State, at: u64) {
    let Some(parked) = state.parked.get(&at) else { return };
    let request = parked.request;
    let done = match (request.sqe.opcode, parked.is_late()) {
        (op::TIMEOUT, true) => {
            let breaks_link = request.sqe.op_flags & ETIME_SUCCESS == 0;
            Done { breaks_link, ..Done::of(Err(Errno::ETIME)) }
        }
        (op::TIMEOUT, false) => return,
        (_, true) => return time_out(ring, state, at),
        (op::POLL_ADD, false) => {
            let ready = parked.ready().bits() as i32;
            if ready == 0 {
                return;
            }
            // Who does not take completions is told that there will be no more; so none feeds itself for ever.
            if request.sqe.len & MULTI != 0 && ring.has_room(state) {
                let user_data = request.sqe.user_data;
                return ring.complete(state, Cqe { user_data, res: ready, flags: CQE_MORE });
            }
            Done::of(Ok(i64::from(ready)))
        }
        _ => {
            let Some(file) = parked.file.clone() else { return };
            match transfer(ring, state, &file, &request.sqe) {
                Outcome::Done(done) => done,
                Outcome::Waits(_) => return,
            }
        }
    };
    let Some(mut parked) = state.parked.remove(&at) else { return };
    let rest = core::mem::take(&mut parked.rest);
    drop(parked);
    if let Some((next, rest)) = finish(ring, state, &request, rest, done) {
        run(ring, state, next, rest);
    }
}

/// A linked timeout came first: the request is cancelled, and the timeout says so.
fn time_out(ring: &Ring, state: &mut State, at: u64) {
    let Some(mut parked) = state.parked.remove(&at) else { return };
    let mut rest = core::mem::take(&mut parked.rest);
    if let Some(timeout) = rest.pop_front() {
        refuse(ring, state, &parked.request, Errno::ECANCELED);
        refuse(ring, state, &timeout, Errno::ETIME);
    }
    cancel_rest(ring, state, &parked.request, rest);
}
