//! Waiting until a clock shows a time, wherever it is set meanwhile.
//!
//! Owns the queue of those who wait so. Never lets one sleep for a time that is another by now. Locks: that queue's.

use super::clock::{ClockId, clock_now, monotonic};
use super::nanos::Nanos;
use crate::sync::WaitQueue;
use crate::sync::wait::WaitError;

static SET: WaitQueue = WaitQueue::new();

/// The wall clock has been set: whoever waits for it to show a time looks again.
pub(super) fn was_set() {
    SET.wake_all();
}

/// Waits in `queue` until `cond` gives a value, a signal arrives, or the clock shows `at`.
pub fn wait_until<R>(
    queue: &WaitQueue,
    clock: ClockId,
    at: Nanos,
    cond: impl FnMut() -> Option<R>,
) -> Result<R, WaitError> {
    queue.wait_either(&SET, || (monotonic() + (at - clock_now(clock))).0, cond)
}
