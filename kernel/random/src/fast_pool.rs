//! A pool small and fast enough for interrupt handlers.
//!
//! Owns 32 bytes of state that each interrupt's time is stirred into, the tests of those that may count, and the rule
//! when they are worth passing on. It must never hand out its whole state: [`FastPool::drain`] gives half, and what was
//! given cannot be computed from what stays. Lock rules: one owner (a CPU, with interrupts off).
//!
//! **Trust.** An attacker causes interrupts, sees their number, and knows to the cycle when a timer of his own or an
//! interrupt between CPUs hits. Those are stirred in and count for nothing ([`FastPool::stir`]). When a device
//! interrupts is decided outside the CPU; what he cannot know of that is the time to the cycle, if the counter shows
//! it at all. So a device's interrupt counts ([`FastPool::stir_device`]) if the time since the one before passes the
//! tests that the jitter of a counter has to pass, start-up included, and nothing counts on a machine whose counter
//! failed them ([`Counter::Refused`]): its clock is a function of what it executes.
//!
//! **Credit**: one bit for 64 of those that count, as Linux gives for any of a device. **Cost**: two rounds of SipHash's
//! permutation, about 30 instructions; 100 more for a device's.

use crate::credit::EntropyBits;
use crate::health::{Counter, Cutoffs, Health, Timing};

/// Interrupts after which the pool is passed on, however fast they came.
pub const DRAIN_COUNT: u32 = 1024;

/// Interrupts of devices that are worth one bit.
pub const INTERRUPTS_PER_BIT: u32 = 64;

/// Failures of the tests after which nothing counts any more.
pub const CHANCES: u32 = 3;

/// The most that one [`FastPool::drain`] credits: what it passes on.
const MAX_CREDIT: u32 = 128;

/// The state of one CPU. It can be neither copied nor shown.
///
/// ```compile_fail
/// println!("{:?}", alea_random::fast_pool::FastPool::new());
/// ```
pub struct FastPool {
    state: [u64; 4],
    stirred: u32,
    counted: u32,
    failures: u32,
    last_device: u64,
    timing: Timing,
}

impl FastPool {
    /// A pool that saw nothing; SipHash's constants, with a zero key.
    pub const fn new() -> Self {
        Self {
            state: [
                0x736f_6d65_7073_6575,
                0x646f_7261_6e64_6f6d,
                0x6c79_6765_6e65_7261,
                0x7465_6462_7974_6573,
            ],
            stirred: 0,
            counted: 0,
            failures: 0,
            last_device: 0,
            timing: Timing::new(Cutoffs::EIGHTH_BIT),
        }
    }

    /// Stirs in an interrupt that a program can cause and time: when it came and which it was. It is worth nothing.
    pub fn stir(&mut self, time: u64, what: u64) {
        for word in [time, what] {
            self.state[3] ^= word;
            self.round();
            self.state[0] ^= word;
        }
        self.stirred = self.stirred.saturating_add(1);
    }

    /// Stirs in an interrupt of a device, which counts if its time does.
    pub fn stir_device(&mut self, time: u64, what: u64) {
        self.stir(time, what);
        let since = time.wrapping_sub(self.last_device);
        self.last_device = time;
        match self.timing.observe(since) {
            Ok(counts) => {
                let counts = counts && self.failures < CHANCES;
                self.counted = self.counted.saturating_add(u32::from(counts));
            }
            Err(_) => {
                // What came before is worth nothing either, and the start-up tests begin again.
                self.test_again();
                self.failures = self.failures.saturating_add(1);
            }
        }
    }

    /// The start-up tests from their beginning: until they have passed, no interrupt of a device counts. Failures stay.
    pub const fn test_again(&mut self) {
        self.counted = 0;
        self.timing = Timing::new(Cutoffs::EIGHTH_BIT);
    }

    /// How many interrupts were stirred in since the last drain.
    pub const fn count(&self) -> u32 {
        self.stirred
    }

    /// How many interrupts of devices count since the last drain.
    pub const fn counted(&self) -> u32 {
        self.counted
    }

    /// How often the times of devices have failed a test.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// How the times of devices stand: [`CHANCES`] failures are one too many, after each of the others the start-up tests
    /// begin again.
    pub const fn health(&self) -> Health {
        if self.failures >= CHANCES {
            Health::Failed
        } else if self.timing.started() {
            Health::Healthy
        } else {
            Health::Starting
        }
    }

    /// Takes half of the state and what it is worth, if the counter that told the times is `counter`.
    ///
    /// ```
    /// use alea_random::{credit::EntropyBits, fast_pool::FastPool, health::Counter};
    /// let mut pool = FastPool::new();
    /// (0..1_000_000).for_each(|n| pool.stir(n * n, 0xec)); // a program's own timer
    /// let (_, credit) = pool.drain(Counter::Usable);
    /// assert_eq!(credit, EntropyBits(0));
    /// ```
    pub fn drain(&mut self, counter: Counter) -> ([u64; 2], EntropyBits) {
        let credit = match counter {
            Counter::Refused => 0,
            Counter::Usable => (self.counted / INTERRUPTS_PER_BIT).min(MAX_CREDIT),
        };
        (self.stirred, self.counted) = (0, 0);
        let before = self.state;
        let [first, second, ..] = before;
        // The permutation alone could be undone, and what stays would tell what was passed on; added to its own
        // argument it is a one-way function.
        (0..3).for_each(|_| self.round());
        for (word, before) in self.state.iter_mut().zip(before) {
            *word = word.wrapping_add(before);
        }
        ([first, second], EntropyBits(credit))
    }

    /// SipHash's permutation (Aumasson and Bernstein, 2012).
    const fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.state = [a, b, c, d];
    }
}

impl Default for FastPool {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(alea_loom)))]
mod tests;
