//! Entropy from the time that the same small work takes, for machines that have nothing else.
//!
//! Owns the sampling loop, its health tests and its credit. It reads time only through
//! [`CycleCounter`] and hands every raw sample to its caller, who hashes them: samples are never
//! output. Lock rules: none; a [`Jitter`] has one owner.
//!
//! **Trust.** Execution time varies with caches, refills, interrupts, frequency and, in a virtual
//! machine, with everything the host does. How much of that an attacker cannot know is not
//! provable, so the claim is small: the tests draw the line at [`Cutoffs::EIGHTH_BIT`] per sample and
//! the credit is an eighth of that again, [`SAMPLES_PER_BIT`] samples that varied for one bit. NIST's
//! estimators find 0.36 bits and more in a sample of one start of an emulated machine, 0.17 and more across a thousand starts, and 0.07
//! on its host: docs/assessment.md in Alea's repository, and `examples/raw_jitter.rs` for those who assess others.
//!
//! **Cost.** 256 bits take 1,024 start-up samples and 16,384 credited ones, about half a microsecond
//! each under emulation and less on hardware; where the clock is coarse, twice as many.
//!
//! **What is measured** is always the same work: as many instructions on the same places in memory, whatever was
//! measured before. Work whose length or whose places depend on earlier samples would make even a perfect clock look
//! random, and no health test could tell: a first version did the one, and credited 256 bits to a machine whose clock
//! counts instructions; a second did the other, and would have to one whose loads take a cycle longer after a store.
//!
//! **Failure.** A counter that stands still, counts evenly or runs in a short cycle is found by the
//! derivatives, or by [`HealthTests`](crate::health::HealthTests), and leads to an error: no credit is ever given for it. Where
//! guest time is a function of executed instructions (QEMU's `-icount`) that is the right answer.
//! There a counter that is coarser than an instruction says now one tick more, now one less, in a pattern that no
//! health test sees: so a change by one tick counts for nothing. `examples/bare` boots such machines.
//!
//! Literature: S. Müller, *CPU time jitter based non-physical true random number generator*;
//! NIST SP 800-90B, section 4.

use core::{fmt, hint};

use crate::credit::EntropyBits;
use crate::health::{Cutoffs, HealthFault, Timing};
use crate::splitmix64;

/// How many unsuspicious samples are worth one bit.
pub const SAMPLES_PER_BIT: u32 = 64;

/// How long the measured work is: loads and stores that wait for each other.
const ROUNDS: u32 = 16;

/// A source is given up when it has delivered this many samples for each one that is needed.
pub const PATIENCE: u32 = 8;

/// A counter of fine-grained time, such as the TSC.
pub trait CycleCounter {
    /// The counter's value now.
    fn now(&mut self) -> u64;
}

/// Why the counter is no source of entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterFault {
    /// A health test failed.
    Health(HealthFault),
    /// Too few samples varied.
    TooRegular,
}

impl fmt::Display for JitterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Health(fault) => fault.fmt(f),
            Self::TooRegular => f.write_str("the cycle counter advances too regularly"),
        }
    }
}

impl core::error::Error for JitterFault {}

/// What a collection amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterReport {
    /// Samples handed to the caller.
    pub samples: u32,
    /// Those among them that were too regular to count.
    pub regular: u32,
    /// What the caller may credit once all samples are hashed.
    pub credit: EntropyBits,
}

/// The collector: the last times seen and the health tests over them. Raw samples are in it, so it can be
/// neither copied nor shown.
///
/// ```compile_fail
/// println!("{:?}", alea_random::jitter::Jitter::new());
/// ```
pub struct Jitter {
    timing: Timing,
    work: [u8; 256],
}

impl Default for Jitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Jitter {
    /// A collector that has seen nothing.
    pub const fn new() -> Self {
        Self { timing: Timing::new(Cutoffs::EIGHTH_BIT), work: [0; 256] }
    }

    /// Does a little work and hands the time it took to `absorb`.
    ///
    /// Returns whether the sample counts: the start-up tests are over, the time and the change of its change are different
    /// from zero, and its change is more than a tick of the counter.
    pub fn sample(
        &mut self,
        counter: &mut impl CycleCounter,
        absorb: &mut impl FnMut(u64),
    ) -> Result<bool, HealthFault> {
        let start = counter.now();
        self.do_work();
        let delta = counter.now().wrapping_sub(start);
        absorb(delta);
        self.timing.observe(delta)
    }

    /// Whether the start-up tests are over.
    pub const fn started(&self) -> bool {
        self.timing.started()
    }

    /// Samples until `wanted` may be credited.
    ///
    /// ```
    /// use alea_random::{credit::EntropyBits, jitter::{CycleCounter, Jitter, JitterFault}};
    ///
    /// struct Even(u64); // a counter that betrays nothing
    /// impl CycleCounter for Even {
    ///     fn now(&mut self) -> u64 { self.0 += 40; self.0 }
    /// }
    ///
    /// let mut counter = Even(0);
    /// let result = Jitter::new().collect(&mut counter, EntropyBits::READY, |_| ());
    /// assert!(matches!(result, Err(JitterFault::Health(_))));
    /// ```
    pub fn collect(
        &mut self,
        counter: &mut impl CycleCounter,
        wanted: EntropyBits,
        mut absorb: impl FnMut(u64),
    ) -> Result<JitterReport, JitterFault> {
        let needed = wanted.0.saturating_mul(SAMPLES_PER_BIT);
        let limit = needed.saturating_mul(PATIENCE).saturating_add(crate::health::STARTUP);
        let (mut samples, mut counted) = (0u32, 0u32);
        while counted < needed {
            if samples == limit {
                return Err(JitterFault::TooRegular);
            }
            samples += 1;
            if self.sample(counter, &mut absorb).map_err(JitterFault::Health)? {
                counted += 1;
            }
        }
        Ok(JitterReport { samples, regular: samples - counted, credit: wanted })
    }

    /// Always the same instructions on the same cells, each of which waits for the one before. Nothing in here may
    /// depend on a time.
    #[inline(never)]
    fn do_work(&mut self) {
        let (mut at, mut value) = (0u8, 1u8);
        for _ in 0..ROUNDS {
            let cell = &mut self.work[usize::from(at)];
            value = cell.wrapping_mul(5).wrapping_add(value);
            *cell = value;
            // A permutation of all cells (Hull and Dobell), from one line of the cache to another.
            at = at.wrapping_mul(77).wrapping_add(101);
        }
        hint::black_box(&mut self.work);
    }
}

/// One 64-bit word from jitter, to seed a [`splitmix64`] generator where there is no RDRAND.
///
/// The samples are folded by a bijective mixer, not by a hash: good for a generator that is not
/// for secrets, and for nothing else.
pub fn seed_word(counter: &mut impl CycleCounter) -> Result<u64, JitterFault> {
    let mut word = 0;
    Jitter::new().collect(counter, EntropyBits(u64::BITS), |sample| {
        word = splitmix64::step(word ^ sample).1;
    })?;
    Ok(word)
}

#[cfg(all(test, not(alea_loom)))]
mod tests {
    use super::*;

    struct Even(u64, u64);

    impl CycleCounter for Even {
        fn now(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(self.1).wrapping_add(12345);
            self.0
        }
    }

    /// Sixteen cells, each of which waits for the one before.
    #[test]
    fn the_work_is_as_long_as_it_is_said_to_be() {
        let mut jitter = Jitter::new();
        jitter.do_work();
        assert_eq!((jitter.work.iter().filter(|cell| **cell != 0).count(), ROUNDS), (16, 16));
    }

    /// What is measured does not depend on what was measured: whatever a clock says, memory is the same afterwards.
    #[test]
    fn the_work_depends_on_no_time() {
        let [one, two] = [3, 0x5851_f42d_4c95_7f2d].map(|factor| {
            let (mut jitter, mut counter) = (Jitter::new(), Even(1, factor));
            for _ in 0..200 {
                let _unhealthy = jitter.sample(&mut counter, &mut |_| ());
            }
            jitter.work
        });
        assert_eq!(one, two);
        assert_ne!(one, [0; 256], "no work was done");
    }
}
