//! How many tasks each user has, for RLIMIT_NPROC.
//!
//! Users share counters by a hash of their number, so a counter tells the most that a user can have, which is
//! all that fork needs while it is below the limit; only at the limit are the tasks themselves counted. Root,
//! which has no limit, is not counted. Owns the counters. Never
//! allocates. Locks: none.

use crate::process::tree::table;
use core::sync::atomic::{AtomicU64, Ordering};

const COUNTERS: usize = 64;

/// Relaxed everywhere: each is a number of its own; a fork beside another one may see the limit a task late, as
/// on Linux.
static TASKS: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];

/// The counter of a user; none for root.
#[inline]
fn counter(uid: u32) -> Option<&'static AtomicU64> {
    let mixed = uid.wrapping_mul(0x9e37_79b9) >> 26;
    if uid == 0 { None } else { TASKS.get(mixed as usize) }
}

/// A task of the user begins to exist.
#[inline]
pub(super) fn join(uid: u32) {
    if let Some(tasks) = counter(uid) {
        tasks.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task of the user has gone, or changed its user.
#[inline]
pub(super) fn leave(uid: u32) {
    if let Some(tasks) = counter(uid) {
        tasks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the user has `limit` tasks or more; those count that have ended and nobody has waited for.
pub(in crate::process) fn has_as_many_as(limit: u64, uid: u32) -> bool {
    if counter(uid).is_none_or(|tasks| tasks.load(Ordering::Relaxed) < limit) {
        return false;
    }
    let mut tasks = 0u64;
    table::for_each_process(&mut |process| {
        process.for_each_thread(&mut |thread| {
            tasks = tasks.saturating_add(u64::from(thread.cred_arc().uid == uid));
        });
    });
    tasks >= limit
}
