//! Reseeds by the clock, often after boot, every minute later; samples of jitter by the clock, every second; and until the service is
//! ready a look at devices that have not answered, ten times a second.
//!
//! Owns the three timers of this floor. The second one only runs where neither RDSEED nor RDRAND works, and does nothing but
//! order samples, which the CPU that it woke takes before it halts again. Reseeds in the timers' thread, never in an interrupt: RDSEED and RDRAND may be
//! asked some twenty times, each of which may leave a virtual machine.
//!
//! Locks: none of its own.

use super::live::RANDOM;
use super::sources;
use crate::base::cpu;
use crate::sync::Once;
use crate::time::{self, Nanos, TimerRoom, TimerTarget};
use alea_random::credit::State;
use alea_random::reseed::interval;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

struct Reseed(TimerRoom);

impl TimerTarget for Reseed {
    fn needs_thread(&self) -> bool {
        true
    }

    fn is_kernels_own(&self) -> bool {
        true
    }

    fn expired(self: Arc<Self>, _: Nanos) {
        debug_assert!(cpu::interrupts_enabled(), "a reseed in an interrupt takes too long");
        // What no CPU had the time for, on a machine that is never idle.
        while sources::jitter::sample() {}
        sources::jitter::order();
        arm_in(RANDOM.on_schedule(uptime()));
    }
}

struct Sampling(TimerRoom);

impl TimerTarget for Sampling {
    fn is_kernels_own(&self) -> bool {
        true
    }

    fn expired(self: Arc<Self>, now: Nanos) {
        sources::jitter::order();
        time::arm(&self.0, now + SAMPLE_EVERY, self.clone());
    }
}

struct Looking(TimerRoom);

impl TimerTarget for Looking {
    fn needs_thread(&self) -> bool {
        true
    }

    fn is_kernels_own(&self) -> bool {
        true
    }

    fn expired(self: Arc<Self>, now: Nanos) {
        if RANDOM.state() != State::Ready {
            RANDOM.credit(sources::late_credit());
            time::arm(&self.0, now + LOOK_EVERY, self.clone());
        }
    }
}

/// How often devices that were asked at boot are looked at on a machine that is not ready.
const LOOK_EVERY: Nanos = Nanos(100_000_000);

/// How often samples are ordered where nothing else brings entropy.
const SAMPLE_EVERY: Nanos = Nanos(1_000_000_000);

static SAMPLING: Once<Arc<Sampling>> = Once::new();
/// Whether its timer runs, which it does for ever then: an instruction that failed never comes back.
static SAMPLES: AtomicBool = AtomicBool::new(false);

static TARGET: Once<Arc<Reseed>> = Once::new();

/// From here on timers can be armed.
pub fn start() {
    let room = || TimerRoom::new().expect("no memory for a timer");
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    TARGET.call_once(|| Arc::new(Reseed(room())));
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    SAMPLING.call_once(|| Arc::new(Sampling(room())));
    if RANDOM.state() != State::Ready {
        #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
        let looking = Arc::new(Looking(room()));
        time::arm(&looking.0, time::monotonic() + LOOK_EVERY, looking.clone());
    }
    arm();
}

/// Arms the next reseed, once the service is ready and timers work.
pub fn arm() {
    if RANDOM.state() == State::Ready {
        arm_in(interval(uptime()));
    }
}

fn uptime() -> Duration {
    Duration::from_nanos(time::monotonic().as_u64())
}

fn arm_in(wait: Duration) {
    let Some(target) = TARGET.get() else { return };
    let now = time::monotonic();
    let wait = Nanos(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
    time::arm(&target.0, now + wait, target.clone());
    // Relaxed: one of the CPUs that come here finds it false.
    if !sources::has_instruction() && !SAMPLES.swap(true, Ordering::Relaxed) {
        let Some(sampling) = SAMPLING.get() else { return };
        time::arm(&sampling.0, now + SAMPLE_EVERY, sampling.clone());
    }
}
