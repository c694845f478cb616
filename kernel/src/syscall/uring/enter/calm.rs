//! Plain entries of a ring where nothing else goes on: nothing waits, nothing is kept back, nothing is to be told late.
//!
//! Most calls of io_uring_enter find a ring so. Entries that do nothing, reads and writes of one buffer that need not wait are carried out
//! here with no more looks than the entry itself asks for; the first other one is left to [`super::super::submit`], with all behind it. Owns
//! nothing. Never leaves anything that waits. Locks: the ring's mutex.

use super::super::act::plain::transfer;
use super::super::ring::{Ring, State};
use crate::sync::cond_resched;
use abi::uring::{Cqe, Sqe};
use zerocopy::FromZeros;

/// What became of plain entries.
#[derive(Clone, Copy, Default)]
pub struct Passed {
    /// How many were taken.
    pub taken: u32,
    /// How many completions user space has not taken now.
    pub untaken: u32,
}

/// Takes up to `count` plain entries from the front, if the ring is calm.
#[inline(always)]
pub fn submit_plain(ring: &Ring, count: u32) -> Passed {
    let Some(mut state) = ring.try_calm() else { return Passed::default() };
    let state = &mut *state;
    let front = ring.shared().front();
    let is_there = count != 0 && front.submitted(state.sq_head) != 0;
    if !is_there || ring.check_submitter(state).is_err() {
        return Passed::default();
    }
    // One that does nothing, alone, goes without what many need.
    let is_nop = ring.pass_nop(state);
    let mut taken = u32::from(is_nop);
    if taken != count {
        taken += pass_more(ring, state, count - taken, is_nop);
    }
    if taken != 0 {
        front.set_sq_head(state.sq_head);
        ring.show_new(state, front);
    }
    Passed { taken, untaken: front.untaken(state.cq_tail()) }
}

/// Takes up to `most` more. What comes next is most often as what was before.
#[inline(never)]
fn pass_more(ring: &Ring, state: &mut State, most: u32, mut are_nops: bool) -> u32 {
    let most = most.min(ring.submitted(state));
    let mut sqe = Sqe::new_zeroed();
    let (mut taken, mut failed) = (0, 0);
    while taken != most && failed != 2 {
        let passed = match are_nops {
            // What passes in one go lies in a page.
            true => ring.pass_nops(state, most - taken),
            false => u32::from(pass_transfer(ring, state, &mut sqe)),
        };
        taken += passed;
        failed = if passed == 0 { failed + 1 } else { 0 };
        are_nops ^= passed == 0;
        cond_resched();
    }
    taken
}

/// Takes the next entry, which is there, if it reads or writes one buffer, need not wait, and its completion finds room.
#[inline(always)]
fn pass_transfer(ring: &Ring, state: &mut State, sqe: &mut Sqe) -> bool {
    if !ring.has_room(state) || !ring.shared().read_entry(state.sq_head, sqe) {
        return false;
    }
    let Some(res) = transfer(ring, sqe) else { return false };
    state.sq_head = state.sq_head.wrapping_add(1);
    ring.complete(state, Cqe { user_data: sqe.user_data, res, flags: 0 });
    true
}
