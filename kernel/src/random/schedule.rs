//! Reseeds by the clock: often after boot, every minute later.
//!
//! Owns the one timer of this floor. Reseeds in the timers' thread, never in an interrupt: RDSEED and RDRAND may be
//! asked some twenty times, each of which may leave a virtual machine.
//!
//! Locks: none of its own.

use super::{pool, sources};
use crate::base::cpu;
use crate::sync::Once;
use crate::time::{self, Nanos, TimerRoom, TimerTarget};
use alea_random::credit::State;
use alea_random::reseed::{Cause, interval};
use alloc::sync::Arc;
use core::time::Duration;

struct Reseed(TimerRoom);

impl TimerTarget for Reseed {
    fn needs_thread(&self) -> bool {
        true
    }

    fn expired(self: Arc<Self>, _: Nanos) {
        debug_assert!(cpu::interrupts_enabled(), "a reseed in an interrupt takes too long");
        if !sources::has_instruction() {
            sources::jitter::refresh();
        }
        pool::reseed(Cause::Schedule);
        arm();
    }
}

static TARGET: Once<Arc<Reseed>> = Once::new();

/// From here on timers can be armed.
pub fn start() {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    TARGET.call_once(|| Arc::new(Reseed(TimerRoom::new().expect("no memory for a timer"))));
    arm();
}

/// Arms the next reseed, once the service is ready and timers work.
pub fn arm() {
    let Some(target) = TARGET.get() else { return };
    if pool::state() != State::Ready {
        return;
    }
    let now = time::monotonic();
    let wait = interval(Duration::from_nanos(now.as_u64()));
    let wait = Nanos(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
    time::arm(&target.0, now + wait, target.clone());
}
