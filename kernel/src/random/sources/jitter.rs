//! The jitter of the time-stamp counter: the source of machines that have no other.
//!
//! **Trust**, **cost** and **credit**: see [`alea_random::jitter`]. At boot it always contributes a few
//! uncredited samples, and runs until the service is ready where nothing else made it so. A counter that
//! fails the health tests is given three chances; then the service stays as it is and says so.
//!
//! Owns the verdict on the counter, which other sources obey. Never hands a sample to anybody but the pool, raw ones
//! for estimators apart. No locks.

use crate::base::tsc;
use crate::random::{pool, stats};
use alea_random::credit::EntropyBits;
use alea_random::health::Counter;
use alea_random::jitter::{CycleCounter, Jitter};
use core::sync::atomic::{AtomicBool, Ordering};
use zerocopy::IntoBytes;
use zeroize::Zeroize;

/// Samples mixed in on machines that are ready without them.
const EXTRA: u32 = 64;
/// Samples mixed in at a reseed: some 30 bits, if they are what NIST's estimators say.
const REFRESH: u32 = 256;
const CHANCES: u32 = 3;

/// The TSC as a source of samples.
pub struct Tsc;

impl CycleCounter for Tsc {
    fn now(&mut self) -> u64 {
        tsc::read_ordered()
    }
}

/// Whether [`collect`] found no entropy in the counter.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// What is known of the counter: nothing that it times is credited once it was refused.
pub fn counter() -> Counter {
    // Relaxed: set by the boot CPU before it watches interrupts and before other CPUs run.
    if REFUSED.load(Ordering::Relaxed) { Counter::Refused } else { Counter::Usable }
}

/// Mixes samples in; what they are worth, on top of what the other sources have given.
pub fn collect(so_far: EntropyBits) -> EntropyBits {
    if so_far >= EntropyBits::READY {
        let (mut jitter, mut buffer) = (Jitter::new(), Buffer::new());
        for _ in 0..EXTRA {
            // A health test cannot fail within so few samples, and nothing is credited.
            let _unhealthy = jitter.sample(&mut Tsc, &mut |sample| buffer.add(sample));
        }
        return EntropyBits(0);
    }
    for _ in 0..CHANCES {
        let mut buffer = Buffer::new();
        let collected =
            Jitter::new().collect(&mut Tsc, EntropyBits::READY, |sample| buffer.add(sample));
        // Whatever came is mixed in before anything is credited.
        drop(buffer);
        match collected {
            Ok(report) => {
                log::info!(
                    "random: {} samples of TSC jitter, {} of them too regular",
                    report.samples,
                    report.regular
                );
                stats::credited(stats::Source::Jitter, report.credit);
                return report.credit;
            }
            Err(fault) => {
                stats::failed(stats::Source::Jitter);
                log::warn!("random: {fault}");
            }
        }
    }
    // Relaxed: as in `counter`.
    REFUSED.store(true, Ordering::Relaxed);
    log::error!("random: no source of entropy; waiting for user space to bring some");
    EntropyBits(0)
}

/// Some samples for a reseed by the clock on a machine that has no other source left: whoever knew all state once does
/// not know it for ever. Credits nothing. Takes a millisecond or two.
pub fn refresh() {
    let (mut jitter, mut buffer) = (Jitter::new(), Buffer::new());
    for _ in 0..REFRESH {
        // Credited nothing, whatever the tests say.
        let _unhealthy = jitter.sample(&mut Tsc, &mut |sample| buffer.add(sample));
    }
}

/// Fresh raw samples, the low eight bits of each, for those who estimate their entropy. None of them goes
/// into the pool, and what the health tests say of them does not matter here.
pub fn raw_samples(out: &mut [u8]) {
    let mut jitter = Jitter::new();
    for byte in out {
        let _judged_elsewhere = jitter.sample(&mut Tsc, &mut |sample| *byte = sample as u8);
    }
}

/// Samples on their way to the pool, some at a time because hashing has a cost per call.
struct Buffer {
    samples: [u64; 64],
    len: usize,
}

impl Buffer {
    const fn new() -> Self {
        Self { samples: [0; 64], len: 0 }
    }

    fn add(&mut self, sample: u64) {
        self.samples[self.len] = sample;
        self.len += 1;
        if self.len == self.samples.len() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let bytes = self.samples[..self.len].as_bytes();
        stats::mixed(stats::Source::Jitter, bytes.len());
        pool::mix(bytes);
        self.samples.zeroize();
        self.len = 0;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.flush();
    }
}
