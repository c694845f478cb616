//! Going on with requests that wait: a look at those whose bells have rung, what has become of them, and what was kept back for them.
//!
//! Owns nothing. Never sleeps for a request. Locks: the ring's mutex is held by the caller.

use super::act::transfer::transfer;
use super::awaited;
use super::carry::{
    TIMEOUT_MULTISHOT, act_as, cancel, cancel_rest, finish, forget, refuse, refuse_all, run,
    run_next,
};
use super::check::MULTI;
use super::outcome::{Done, Outcome};
use super::parked::{AllRung, Parked};
use super::request::{Chain, Request};
use super::ring::{Ring, State};
use crate::sync::Pace;
use crate::vfs::OpenFile;
use abi::Errno;
use abi::uring::{CQE_MORE, Cqe, op, sqe as flag};
use alloc::sync::Arc;

/// IORING_TIMEOUT_ETIME_SUCCESS.
const ETIME_SUCCESS: u32 = 1 << 5;

/// Begins what was kept back, as far as it may.
fn begin_deferred(ring: &Ring, state: &mut State) {
    loop {
        let stays_back = |chain: &Chain| chain.is_drained() && !state.parked.is_empty();
        if state.deferred.front().is_none_or(stays_back) {
            return;
        }
        if !ring.is_mine() && !ring.is_orphan() {
            // It is carried out in that memory, with those files.
            ring.tower.tell_work(false);
            return ring.tell_home();
        }
        let Some(chain) = state.deferred.pop_front() else { return };
        match ring.is_mine() {
            true => run_next(ring, state, chain),
            false => refuse_all(ring, state, chain, Errno::ECANCELED),
        }
    }
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
    let (has_rung, has_free) = ring.tower.take_rung(ring.is_mine());
    if has_work {
        ring.take_inbox(state);
    }
    if has_free {
        look_at(ring, state, |state| &mut state.free);
    }
    if has_rung {
        look_at(ring, state, |state| &mut state.rung);
    } else if !state.parked.is_empty() && ring.is_orphan() {
        // Who submitted them is gone.
        cancel(ring, state, usize::MAX, |parked| !parked.is_free());
    }
    if state.counting != 0 {
        end_counted(ring, state);
    }
    begin_deferred(ring, state);
}

fn look_at(ring: &Ring, state: &mut State, rung: fn(&mut State) -> &mut AllRung) {
    let mut from = 0;
    while let Some(at) = rung(state).take(from) {
        from = at + 1;
        look_again(ring, state, at);
        crate::sync::cond_resched();
    }
    let next = state.next_parked;
    rung(state).shrink(next);
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
    if !parked.is_late() && parked.is_left() {
        // As on Linux, nobody goes on with what a thread left that has ended, but for its times.
        return complete_parked(ring, state, at, &request, Done::of(Err(Errno::ECANCELED)));
    }
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
            let look = || awaited::look_again(&file, &request.sqe);
            let Some(done) = act_as(parked.person.clone(), look) else { return };
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
        let parked = state.parked.get(&at)?;
        let (request, person) = (parked.request.clone(), parked.person.clone());
        match act_as(person, || transfer(ring, state, file, &request)) {
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
