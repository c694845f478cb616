//! Carrying requests out in order: links, requests that wait, what becomes of them when they are woken or cancelled.
//!
//! A request that would wait is parked with what is linked to it; a later [`retry`] goes on. A drained request, and all behind it,
//! stay back until nothing is parked. Owns nothing. Never sleeps for a request. Locks: the ring's mutex is held by the caller.

use super::act::perform::{deadline_of, nop, perform};
use super::act::plain;
use super::act::transfer::transfer;
use super::awaited;
use super::check::{MULTI, REPORT_USAGE, TIMEOUT_UPDATE};
use super::files::registered_file;
use super::outcome::{Done, Outcome, Wait};
use super::parked::{Maker, Parked, When};
use super::request::{Chain, Request};
use super::ring::{Ring, State};
use super::update::{tell, update_poll, update_timeout};
use crate::mm::fallible::{TryGrow, TryMap, try_box};
use crate::process;
use crate::sync::Pace;
use crate::vfs::OpenFile;
use abi::uring::{CQE_MORE, CQE_NOTIF, Cqe, Sqe, ZC_COPIED, op, sqe as flag};
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// IORING_TIMEOUT_ETIME_SUCCESS.
const ETIME_SUCCESS: u32 = 1 << 5;
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
    let first = chain.requests.front().cloned();
    if state.deferred.try_push(chain).is_err()
        && let Some(first) = first
    {
        refuse(ring, state, &first, Errno::ENOMEM);
    }
}

/// Begins a request that stands alone.
#[inline]
pub fn begin_one(ring: &Ring, state: &mut State, request: &Request) {
    if state.deferred.is_empty() && !request.has(flag::IO_DRAIN) {
        run_alone(ring, state, request);
    } else {
        hold_back(ring, state, request);
    }
}

fn hold_back(ring: &Ring, state: &mut State, request: &Request) {
    let mut chain = Chain::default();
    match chain.add(request) {
        Ok(_) => begin(ring, state, chain),
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
        run_next(ring, state, chain);
    }
}

/// A drained chain comes after all completions of what was before, those that come late included.
fn run_next(ring: &Ring, state: &mut State, chain: Chain) {
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

/// As [`run`], with nothing linked to the request.
#[inline]
fn run_alone(ring: &Ring, state: &mut State, request: &Request) {
    if let Some(res) = plain::transfer(ring, &request.sqe) {
        let user_data = request.sqe.user_data;
        return ring.complete(state, Cqe { user_data, res, flags: 0 });
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
                Ok(()) => return,
                Err(error) => Done::of_part(moved, error),
            }
        }
    };
    tell_done(ring, state, request, done);
}

/// Adds its completion, if one is wanted.
#[inline]
fn tell_done(ring: &Ring, state: &mut State, request: &Request, done: Done) {
    if done.breaks_link || !request.has(flag::CQE_SKIP_SUCCESS) {
        let res = request.result(done.res);
        ring.complete(state, Done { res, ..done }.completion(&request.sqe));
    }
    if request.sqe.opcode == op::SEND_ZC {
        // What was sent was copied, so the bytes may be used again.
        ring.complete_late(state, notice(&request.sqe));
    }
}

fn notice(sqe: &Sqe) -> Cqe {
    let res = if sqe.ioprio & REPORT_USAGE == 0 { 0 } else { ZC_COPIED.cast_signed() };
    Cqe { user_data: sqe.user_data, res, flags: CQE_NOTIF }
}

/// Completes a request: what comes next, if something does.
fn finish(
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
    let Some(cred) = state.personalities.get(&request.sqe.personality).cloned() else {
        return Outcome::of(Err(Errno::EINVAL));
    };
    let task = process::current();
    let own = task.cred_arc();
    task.set_cred(cred);
    let outcome = carry_out(ring, state, request);
    task.set_cred(own);
    outcome
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
        true => Some(crate::syscall::caller::file(sqe.fd)?),
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
fn cancel(ring: &Ring, state: &mut State, most: usize, is_it: impl Fn(&Parked) -> bool) -> usize {
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
fn forget(state: &mut State, parked: &Parked) {
    state.counting -= usize::from(parked.since.is_some());
}

/// Lets a request wait, with what is linked to it.
fn park(
    ring: &Ring,
    state: &mut State,
    mut request: Request,
    rest: &mut VecDeque<Request>,
    wait: Wait,
) -> Result<()> {
    if !ring.is_mine() {
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
    let place = (at, &mut state.rung);
    let maker = Maker { task: process::current_arc(), when: When::of(ring.flags) };
    let mut parked =
        Parked::new(&ring.tower, place, maker, request, wait.file, wait.wanted, deadline)?;
    parked.rest = core::mem::take(rest);
    let sqe = &parked.request.sqe;
    let counts = sqe.off != 0 && sqe.op_flags & TIMEOUT_MULTISHOT == 0;
    if sqe.opcode == op::TIMEOUT && counts {
        parked.since = Some(ring.counted(state));
    }
    let counts = parked.since.is_some();
    state.parked.try_put(at, try_box(parked)?)?;
    state.counting += usize::from(counts);
    Ok(())
}

/// Looks again at the requests whose bells have rung.
#[inline]
pub fn retry(ring: &Ring, state: &mut State) {
    if ring.has_work() || !state.parked.is_empty() || !state.deferred.is_empty() {
        retry_parked(ring, state);
    }
}

#[inline(never)]
fn retry_parked(ring: &Ring, state: &mut State) {
    let has_work = ring.has_work();
    // Taken back before anything is looked at: what comes meanwhile says so again.
    let has_rung = has_work && ring.is_mine() && ring.tower.take_rung();
    if has_work {
        ring.take_inbox(state);
    }
    if has_rung {
        let mut from = 0;
        while let Some(at) = state.rung.take(from) {
            from = at + 1;
            look_again(ring, state, at);
            crate::sync::cond_resched();
        }
        state.rung.shrink(state.next_parked);
    } else if !state.parked.is_empty() && ring.is_orphan() {
        // Who submitted them is gone.
        cancel(ring, state, usize::MAX, |_| true);
    }
    if state.counting != 0 {
        end_counted(ring, state);
    }
    begin_deferred(ring, state);
}

/// Ends the timeouts for which there were enough completions.
fn end_counted(ring: &Ring, state: &mut State) {
    ring.take_late(state);
    loop {
        let counted = ring.counted(state);
        let is_over = |parked: &Parked| {
            let wanted = parked.request.sqe.off as u32;
            parked.since.is_some_and(|since| counted.wrapping_sub(since) >= wanted)
        };
        let mut all = state.parked.iter().paced();
        let Some((&at, _)) = all.find(|(_, parked)| is_over(parked)) else { return };
        let request = state.parked.get(&at).map(|parked| parked.request.clone());
        if let Some(request) = request {
            ring.count_timeout();
            complete_parked(ring, state, at, &request, Done::of(Ok(0)));
        }
    }
}

fn look_again(ring: &Ring, state: &mut State, at: u64) {
    let Some(parked) = state.parked.get(&at) else { return };
    let request = parked.request.clone();
    let done = match (request.sqe.opcode, parked.is_late()) {
        (op::TIMEOUT, true) => {
            ring.count_timeout();
            if go_on(ring, state, at) {
                return;
            }
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
            if request.sqe.len & MULTI != 0 && parked.comes_again() && ring.has_room(state) {
                let user_data = request.sqe.user_data;
                return ring.complete(state, Cqe { user_data, res: ready, flags: CQE_MORE });
            }
            Done::of(Ok(i64::from(ready)))
        }
        (op::SPLICE | op::TEE | op::FUTEX_WAIT | op::WAITID, false) => {
            let Some(file) = parked.file.clone() else { return };
            let Some(done) = awaited::look_again(&file, &request.sqe) else { return };
            done
        }
        _ => {
            let Some(file) = parked.file.clone() else { return };
            let Some((request, done)) = move_rest(ring, state, at, &file) else { return };
            return complete_parked(ring, state, at, &request, done);
        }
    };
    complete_parked(ring, state, at, &request, done);
}

/// Moves what is left of a request, part by part: `None` if it waits still.
fn move_rest(
    ring: &Ring,
    state: &mut State,
    at: u64,
    file: &Arc<OpenFile>,
) -> Option<(Request, Done)> {
    loop {
        let request = state.parked.get(&at)?.request.clone();
        match transfer(ring, state, file, &request) {
            Outcome::Done(done) => return Some((request, done)),
            Outcome::Waits(wait) => {
                let parked = state.parked.get_mut(&at)?;
                parked.request.has_moved(wait.moved);
                // The look after a part also sees to it that what comes next is told.
                if wait.moved == 0 || parked.ready().is_empty() {
                    return None;
                }
                crate::sync::cond_resched();
            }
        }
    }
}

fn complete_parked(ring: &Ring, state: &mut State, at: u64, request: &Request, done: Done) {
    let Some(mut parked) = state.parked.remove(&at) else { return };
    forget(state, &parked);
    let rest = core::mem::take(&mut parked.rest);
    drop(parked);
    if let Some((next, rest)) = finish(ring, state, request, rest, done) {
        run(ring, state, next, rest);
    }
}

/// Whether a timeout comes again: it tells of this time, and waits for the next.
fn go_on(ring: &Ring, state: &mut State, at: u64) -> bool {
    let has_room = ring.has_room(state);
    let Some(parked) = state.parked.get_mut(&at) else { return false };
    let sqe = &mut parked.request.sqe;
    if sqe.op_flags & TIMEOUT_MULTISHOT == 0 || sqe.off == 1 || !has_room {
        return false;
    }
    sqe.off = sqe.off.saturating_sub(1);
    let res = Errno::ETIME.to_return() as i32;
    let cqe = Cqe { user_data: sqe.user_data, res, flags: CQE_MORE };
    let next = crate::time::since_boot_ns().saturating_add(parked.every);
    if parked.set_deadline(next).is_err() {
        return false;
    }
    ring.complete(state, cqe);
    true
}

/// A linked timeout came first: the request is cancelled, and the timeout says so.
fn time_out(ring: &Ring, state: &mut State, at: u64) {
    let Some(mut parked) = state.parked.remove(&at) else { return };
    let mut rest = core::mem::take(&mut parked.rest);
    if let Some(timeout) = rest.pop_front() {
        if !timeout.has(flag::CQE_SKIP_SUCCESS) {
            refuse(ring, state, &timeout, Errno::ETIME);
        }
        refuse(ring, state, &parked.request, Errno::ECANCELED);
    }
    cancel_rest(ring, state, &parked.request, rest);
}
