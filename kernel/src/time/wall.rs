//! The wall clock is set: who is told.
//!
//! Owns how often it was set, and the queue of those who want to know. Never moves a timer itself: `timer` does. Locks: that
//! queue's.

use super::timer;
use crate::sync::WaitQueue;
use core::sync::atomic::{AtomicU64, Ordering};

/// Those who want to know are woken after the count has changed.
static SET: WaitQueue = WaitQueue::new();
static TIMES: AtomicU64 = AtomicU64::new(0);

/// The wall clock has been set: timers of its times go off when it shows them now.
pub(super) fn was_set() {
    // Release: pairs with the Acquire below: who sees the count sees the clock.
    TIMES.fetch_add(1, Ordering::Release);
    timer::clock_was_set();
    SET.wake_all();
}

/// How often the wall clock has been set.
pub fn times_set() -> u64 {
    TIMES.load(Ordering::Acquire)
}

/// Whoever waits here is woken when the wall clock is set.
pub fn when_set() -> &'static WaitQueue {
    &SET
}
