//! Tests of the live clock and timers, run at boot when the command line has `alea.selftest`.
//!
//! Owns the note of what fired. Never runs without `alea.selftest`. Locks: those of the timers.
#![expect(clippy::disallowed_methods, reason = "a self test, at boot")]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::clock::monotonic;
use super::nanos::Nanos;
use super::timer::{TimerRoom, TimerTarget, arm, cancel};
use crate::base::cpu;

struct Note {
    order: u64,
    at: AtomicU64,
}

static FIRED: AtomicU64 = AtomicU64::new(0);

impl TimerTarget for Note {
    fn expired(self: Arc<Self>, now: Nanos) {
        // Relaxed: one CPU.
        assert!(FIRED.fetch_add(1, Relaxed) == self.order, "timers fired out of order");
        self.at.store(now.0, Relaxed);
    }
}

fn room() -> TimerRoom {
    // There are more places than this test has timers: it may end before its timer.
    TimerRoom::new().expect("no memory for a timer")
}

/// Arms timers out of order and waits for them, with interrupts on meanwhile.
pub fn run() {
    let start = monotonic();
    let mut notes = [2u64, 0, 1].map(|order| {
        let note = Arc::new(Note { order, at: AtomicU64::new(0) });
        let deadline = start + Nanos::from_millis(2 + 2 * order);
        (deadline, arm(&room(), deadline, note.clone()), note)
    });
    let never = Arc::new(Note { order: u64::MAX, at: AtomicU64::new(0) });
    let never = arm(&room(), start + Nanos::from_millis(3), never);
    assert!(cancel(never) && !cancel(never), "a timer was not cancelled once");
    // Relaxed: one CPU.
    while FIRED.load(Relaxed) < 3 {
        cpu::wait_for_interrupt();
        cpu::irq_disable();
        assert!(monotonic() < start + Nanos::from_secs(2), "the timers do not fire");
    }
    notes.sort_by_key(|(deadline, ..)| *deadline);
    let late = notes.map(|(deadline, _, note)| {
        // Relaxed: one CPU.
        let at = Nanos(note.at.load(Relaxed));
        assert!(at >= deadline, "a timer fired early");
        (at - deadline).0 / 1000
    });
    log::info!("time: self tests passed (timers {late:?} us late)");
}
