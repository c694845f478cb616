//! Carrying requests out in order: links, requests that begin to wait, what becomes of them when they are done or cancelled.
//!
//! A request that would wait is parked with what is linked to it; [`super::again`] goes on. A drained request, and all behind it,
//! stay back until nothing is parked. Owns nothing. Never sleeps for a request. Locks: the ring's mutex is held by the caller.

use super::act::perform::{deadline_of, nop, perform};
use super::act::plain;
use super::check::{REPORT_USAGE, TIMEOUT_UPDATE, is_zero_copy};
use super::files::registered_file;
use super::outcome::{Done, Outcome, Wait};
use super::parked::{Maker, Parked, When};
use super::request::{Chain, Request};
use super::ring::{Ring, State};
use super::update::{tell, update_poll, update_timeout};
use crate::mm::fallible::{TryGrow, TryMap, try_box};
use crate::process;
use crate::sync::Pace;
use crate::vfs::{Cred, OpenFile};
use abi::uring::{CQE_NOTIF, Cqe, Sqe, ZC_COPIED, op, sqe as flag};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// IORING_TIMEOUT_MULTISHOT.
pub const TIMEOUT_MULTISHOT: u32 = 1 << 6;

/// Completes what is not carried out.
pub fn refuse(ring: &Ring, state: &mut State, request: &Request, error: Errno) {
    let res = request.result(error.to_return() as i32);
    ring.complete(state, Cqe { user_data: request.sqe.user_data, res, flags: 0 });
}

/// As [`refuse`], after the batch.
fn refuse_late(ring: &Ring, state: &mut State, request: &Request, error: Errno) {
    let res = request.result(error.to_return() as i32);
    ring.complete_late(state, Cqe { user_data: request.sqe.user_data, res, flags: 0 });
}

/// Begins a chain, or keeps it back until what was before is complete.
pub fn begin(ring: &Ring, state: &mut State, chain: Chain) {
    let stays_back = !state.deferred.is_empty() || chain.is_drained() && !state.parked.is_empty();
    if !stays_back {
        return run_next(ring, state, chain);
    }
    if !ring.is_mine() {
        return refuse_all(ring, state, chain, Errno::EAGAIN);
    }
    if let Err(error) = state.deferred.try_room(1) {
        return refuse_all(ring, state, chain, error);
    }
    // There is room.
    let _there = state.deferred.try_push(chain);
}

/// Completes a chain of which nothing is carried out.
pub fn refuse_all(ring: &Ring, state: &mut State, mut chain: Chain, error: Errno) {
    let Some(first) = chain.requests.pop_front() else { return };
    refuse(ring, state, &first, error);
    cancel_rest(ring, state, &first, chain.requests);
}

/// Begins a request that stands alone; false if it ends the batch.
#[inline]
pub fn begin_one(ring: &Ring, state: &mut State, request: &Request) -> bool {
    if state.deferred.is_empty() && !request.has(flag::IO_DRAIN) {
        run_alone(ring, state, request)
    } else {
        hold_back(ring, state, request)
    }
}

fn hold_back(ring: &Ring, state: &mut State, request: &Request) -> bool {
    let mut chain = Chain::default();
    match chain.add(request) {
        Ok(refused) => {
            begin(ring, state, chain);
            refused.is_none()
        }
        Err(error) => {
            refuse(ring, state, request, error);
            true
        }
    }
}

/// A drained chain comes after all completions of what was before, those that come late included.
pub fn run_next(ring: &Ring, state: &mut State, chain: Chain) {
    if chain.is_drained() {
        ring.take_late(state);
    }
    run_chain(ring, state, chain);
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
pub fn cancel_rest(ring: &Ring, state: &mut State, failed: &Request, rest: VecDeque<Request>) {
    if failed.has(flag::CQE_SKIP_SUCCESS) {
        return;
    }
    for request in rest.into_iter().paced() {
        refuse_late(ring, state, &request, request.refused.unwrap_or(Errno::ECANCELED));
    }
}

/// Carries a request out, and then what is linked to it, until one has to wait.
pub fn run(ring: &Ring, state: &mut State, mut request: Request, mut rest: VecDeque<Request>) {
    loop {
        let done = match carry(ring, state, &request) {
            Outcome::Done(done) => done,
            Outcome::Waits(wait) => {
                let moved = wait.moved;
                match park(ring, state, request.clone(), &mut rest, wait) {
                    Ok(()) => return,
                    Err(error) => Done::of_part(moved, error),
                }
            }
        };
        match finish(ring, state, &request, rest, done) {
            Some((next, others)) => (request, rest) = (next, others),
            None => return,
        }
    }
}

/// As [`run`], with nothing linked to the request; false if it ends the batch.
#[inline]
fn run_alone(ring: &Ring, state: &mut State, request: &Request) -> bool {
    if let Some(res) = plain::transfer(ring, &request.sqe) {
        let user_data = request.sqe.user_data;
        ring.complete(state, Cqe { user_data, res, flags: 0 });
        return true;
    }
    let outcome = match request.sqe.opcode {
        op::NOP => nop(&request.sqe),
        _ => carry(ring, state, request),
    };
    let done = match outcome {
        Outcome::Done(done) => done,
        Outcome::Waits(wait) => {
            let moved = wait.moved;
            match park(ring, state, request.clone(), &mut VecDeque::new(), wait) {
                Ok(()) => return true,
                Err(error) => Done::of_part(moved, error),
            }
        }
    };
    tell_done(ring, state, request, done);
    done.res >= 0 || request.can_be_read()
}

/// Adds its completion, if one is wanted.
#[inline]
fn tell_done(ring: &Ring, state: &mut State, request: &Request, done: Done) {
    if done.breaks_link || !request.has(flag::CQE_SKIP_SUCCESS) {
        let res = request.result(done.res);
        ring.complete(state, Done { res, ..done }.completion(&request.sqe));
    }
    if is_zero_copy(request.sqe.opcode) {
        // What was sent was copied, so the bytes may be used again.
        ring.complete_late(state, notice(&request.sqe));
    }
}

fn notice(sqe: &Sqe) -> Cqe {
    let res = if sqe.ioprio & REPORT_USAGE == 0 { 0 } else { ZC_COPIED.cast_signed() };
    Cqe { user_data: sqe.user_data, res, flags: CQE_NOTIF }
}

/// Completes a request: what comes next, if something does.
pub fn finish(
    ring: &Ring,
    state: &mut State,
    request: &Request,
    mut rest: VecDeque<Request>,
    done: Done,
) -> Option<(Request, VecDeque<Request>)> {
    tell_done(ring, state, request, done);
    if rest.front().is_some_and(|next| next.sqe.opcode == op::LINK_TIMEOUT)
        && let Some(timeout) = rest.pop_front()
        && !timeout.has(flag::CQE_SKIP_SUCCESS)
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
    if request.sqe.personality == 0 {
        carry_out(ring, state, request)
    } else {
        carry_as(ring, state, request)
    }
}

/// Carries it out as who it names.
#[cold]
fn carry_as(ring: &Ring, state: &mut State, request: &Request) -> Outcome {
    match person_of(state, request) {
        Some(person) => act_as(Some(person), || carry_out(ring, state, request)),
        None => Outcome::of(Err(Errno::EINVAL)),
    }
}

fn person_of(state: &State, request: &Request) -> Option<Arc<Cred>> {
    state.personalities.get(&request.sqe.personality).cloned()
}

/// Acts with the credentials of a personality, if there is one.
pub fn act_as<R>(person: Option<Arc<Cred>>, act: impl FnOnce() -> R) -> R {
    let Some(person) = person else { return act() };
    let task = process::current();
    let own = task.cred_arc();
    task.set_cred(person);
    let acted = act();
    task.set_cred(own);
    acted
}

fn carry_out(ring: &Ring, state: &mut State, request: &Request) -> Outcome {
    let sqe = &request.sqe;
    match sqe.opcode {
        op::POLL_REMOVE if sqe.len != 0 => Outcome::of(update_poll(state, sqe)),
        op::TIMEOUT_REMOVE if sqe.op_flags & TIMEOUT_UPDATE != 0 => {
            Outcome::of(update_timeout(state, request))
        }
        op::MSG_RING => Outcome::of(tell(ring, state, sqe)),
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
        op::ASYNC_CANCEL => Outcome::of(cancel_matching(ring, state, sqe)),
        _ => perform(ring, state, request),
    }
}

/// IORING_OP_ASYNC_CANCEL: by what an entry said of itself, by its file, by its operation, or all.
pub fn cancel_matching(ring: &Ring, state: &mut State, sqe: &Sqe) -> Result<i64> {
    use abi::uring::cancel::{ALL, ANY, FD, FD_FIXED, OP, USERDATA};
    let flags = sqe.op_flags;
    let has = |bits: u32| flags & bits != 0;
    let many = has(ALL | ANY);
    let most = if many { usize::MAX } else { 1 };
    let file = match has(FD) {
        false => None,
        true if has(FD_FIXED) => Some(registered_file(ring, sqe.fd)?),
        true => Some(crate::syscall::caller::file_to_keep(sqe.fd)?),
    };
    // As on Linux, of these one is counted, too.
    let is_counted = core::cell::Cell::new(many);
    let counts = |of: &Sqe| matches!(of.opcode, op::FUTEX_WAIT | op::WAITID);
    let by_data = has(USERDATA) || !has(FD | OP);
    let is_it = |parked: &Parked| {
        let of = &parked.request.sqe;
        let is_file =
            |file: &Arc<OpenFile>| parked.file.as_ref().is_some_and(|of| Arc::ptr_eq(of, file));
        let is_it = has(ANY)
            || file.as_ref().is_none_or(is_file)
                && (!has(OP) || u32::from(of.opcode) == sqe.len)
                && (!by_data || of.user_data == sqe.addr);
        is_counted.set(is_counted.get() || is_it && counts(of));
        is_it
    };
    match cancel(ring, state, most, is_it) {
        0 if !many => Err(Errno::ENOENT),
        count => Ok(if is_counted.get() { count as i64 } else { 0 }),
    }
}

/// Cancels up to `most` parked requests: how many it found.
pub fn cancel(
    ring: &Ring,
    state: &mut State,
    most: usize,
    is_it: impl Fn(&Parked) -> bool,
) -> usize {
    let (mut found, mut from) = (0, 0);
    while found < most {
        // Paced, as there may be ten thousand that are not it.
        let mut rest = state.parked.range(from..).paced();
        let can_be = |parked: &Parked| is_it(parked) && !parked.is_woken();
        let at = rest.find(|(_, parked)| can_be(parked)).map(|(&at, _)| at);
        from = at.map_or(from, |at| at + 1);
        let Some(mut parked) = at.and_then(|at| state.parked.remove(&at)) else { break };
        found += 1;
        forget(state, &parked);
        refuse_late(ring, state, &parked.request, Errno::ECANCELED);
        let rest = core::mem::take(&mut parked.rest);
        cancel_rest(ring, state, &parked.request, rest);
        crate::sync::cond_resched();
    }
    found
}

/// It waits no longer.
pub fn forget(state: &mut State, parked: &Parked) {
    state.counting -= usize::from(parked.since.is_some());
}

/// Whether a request is carried out with nobody's memory and files, once a poll has its file.
fn needs_nobody(request: &Request) -> bool {
    matches!(request.sqe.opcode, op::POLL_ADD | op::TIMEOUT | op::LINK_TIMEOUT | op::NOP)
}

/// Lets a request wait, with what is linked to it; after an error that is still in `rest`.
fn park(
    ring: &Ring,
    state: &mut State,
    mut request: Request,
    rest: &mut VecDeque<Request>,
    wait: Wait,
) -> Result<()> {
    let is_free = needs_nobody(&request)
        && rest.iter().all(|next| next.sqe.opcode != op::POLL_ADD && needs_nobody(next));
    if !is_free && !ring.is_mine() {
        return Err(Errno::EAGAIN);
    }
    request.keep()?;
    request.has_moved(wait.moved);
    let limit = match rest.front() {
        Some(next) if next.sqe.opcode == op::LINK_TIMEOUT => Some(deadline_of(next)?),
        _ => None,
    };
    let deadline = wait.deadline.or(limit);
    let at = state.next_parked;
    state.next_parked += 1;
    let person = person_of(state, &request);
    let all = if is_free { &mut state.free } else { &mut state.rung };
    let maker = Maker { task: process::current_arc(), when: When::of(ring.flags) };
    let mut parked = Parked::new(
        &ring.tower,
        (at, all),
        (maker, is_free),
        request,
        wait.file,
        wait.wanted,
        deadline,
    )?;
    parked.person = person;
    let sqe = &parked.request.sqe;
    let counts = sqe.off != 0 && sqe.op_flags & TIMEOUT_MULTISHOT == 0;
    if sqe.opcode == op::TIMEOUT && counts {
        parked.since = Some(ring.counted(state));
    }
    let counts = parked.since.is_some();
    state.parked.try_put(at, try_box(parked)?)?;
    // Only now: what is linked to one that cannot wait is still told of.
    if let Some(parked) = state.parked.get_mut(&at) {
        parked.rest = core::mem::take(rest);
    }
    state.counting += usize::from(counts);
    Ok(())
}
