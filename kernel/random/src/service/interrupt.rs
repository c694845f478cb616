//! Times of interrupts, stirred for each CPU and passed on to the pools now and then.
//!
//! Owns when: after [`DRAIN_COUNT`] interrupts as long as the service is not ready, and after a second. Later never sooner
//! than that, so that nobody who causes interrupts steers what devices told into a pool of his choice. It must
//! never wait: pools that are in use get their words later. Lock rules: those of [`super`]; the pools' is only tried.

use core::fmt;
use core::time::Duration;

use super::{Exclusive, Mixing, Platform, Service};
use crate::credit::{EntropyBits, State};
use crate::fast_pool::{DRAIN_COUNT, FastPool, INTERRUPTS_PER_BIT};
use crate::health::Health;
use crate::pool::Trickle;

/// After this time fewer interrupts are passed on, too.
const DRAIN_AFTER: Duration = Duration::from_secs(1);

/// One CPU's interrupts. Only its handlers may reach it.
pub struct Interrupts {
    fast: FastPool,
    passed_on: Duration,
}

/// An interrupt that has just come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The counter of cycles.
    pub cycles: u64,
    /// Which one it was.
    pub number: u64,
    /// Whether a device sent it because something came from outside. What a program can cause and time itself (the local timer, other
    /// CPUs, a device that has taken a program's output) is worth nothing.
    pub of_device: bool,
}

/// A lock that a handler can try: an extension of [`Exclusive`] for kernels that have [interrupts](Service::interrupt).
pub trait TryExclusive<T>: Exclusive<T> {
    /// Runs `f` unless somebody else has the value.
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
}

impl Interrupts {
    /// A CPU that had no interrupt yet.
    pub const fn new() -> Self {
        Self { fast: FastPool::new(), passed_on: Duration::ZERO }
    }

    /// Begins the start-up tests again: until they have passed, no interrupt of a device counts.
    pub const fn test_again(&mut self) {
        self.fast.test_again();
    }

    /// How often the times of devices have failed a test.
    pub const fn failures(&self) -> u32 {
        self.fast.failures()
    }

    /// How the times of devices stand.
    pub const fn health(&self) -> Health {
        self.fast.health()
    }
}

impl Default for Interrupts {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("health", &self.health()).finish_non_exhaustive()
    }
}

impl<P: Platform> Service<P>
where
    P::Lock<Mixing>: TryExclusive<Mixing>,
{
    /// To be called by the handler of every interrupt. When times were passed on: how many bytes those were and what they
    /// are worth, to be [credited](Self::credit).
    #[inline]
    #[must_use = "credits nothing by itself"]
    pub fn interrupt(
        &self,
        cpu: &mut Interrupts,
        interrupt: Interrupt,
        uptime: impl FnOnce() -> Duration,
    ) -> Option<(usize, EntropyBits)> {
        let Interrupt { cycles, number, of_device } = interrupt;
        if of_device {
            cpu.fast.stir_device(cycles, number);
        } else {
            cpu.fast.stir(cycles, number);
        }
        let count = cpu.fast.count();
        if count < INTERRUPTS_PER_BIT || !count.is_multiple_of(INTERRUPTS_PER_BIT) {
            return None;
        }
        let now = uptime();
        let early = count >= DRAIN_COUNT && self.state() != State::Ready;
        if early || now.saturating_sub(cpu.passed_on) >= DRAIN_AFTER {
            self.pass_on(cpu, now)
        } else {
            None
        }
    }

    fn pass_on(&self, cpu: &mut Interrupts, now: Duration) -> Option<(usize, EntropyBits)> {
        let counter = self.counter();
        let passed_on = self.pools.try_with(|mixing| {
            let (words, bits) = cpu.fast.drain(counter);
            let bytes = words.map(u64::to_le_bytes);
            mixing.pools.spread(Trickle::Interrupts, bytes.as_flattened());
            (size_of_val(&bytes), bits)
        })?;
        cpu.passed_on = now;
        Some(passed_on)
    }
}
