//! The jitter of the time-stamp counter: the source of machines that have no other.
//!
//! **Trust**, **cost** and **credit**: see [`alea_random::jitter`]. At boot it always contributes a few
//! uncredited samples, and runs until the service is ready where nothing else made it so. A counter that
//! fails the health tests is given three chances; then the service stays as it is and says so.
//!
//! Later it goes on in slices ([`sample`]), so that a state that leaked does not stay known for ever: a CPU that has nothing
//! to run takes them before it halts, with interrupts on, and looks between two slices whether something came up.
//! They are ordered by the clock, [`SLICES`] at a time, every second where neither RDSEED nor RDRAND works and at every
//! reseed elsewhere: 128 samples, which are 0.1 ms of a second at most on hardware.
//!
//! Owns the orders for slices. Its verdict on the counter, which interrupts obey, is the service's. Never hands a sample to anybody but the pool, raw ones
//! for estimators apart. No locks.

use crate::base::tsc;
use crate::per_cpu;
use crate::random::live::RANDOM;
use crate::random::stats;
use alea_random::credit::EntropyBits;
use alea_random::health::{Counter, Health};
use alea_random::jitter::{CycleCounter, Jitter};
use alea_random::pool::Trickle;
use alea_random::service::Samples;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use zerocopy::IntoBytes;

/// Samples mixed in on machines that are ready without them.
const EXTRA: u32 = 64;
const CHANCES: u32 = 3;
/// Samples that a CPU takes without looking up: some microseconds.
const SLICE: usize = 8;
/// Slices ordered at a time.
const SLICES: u32 = 16;
/// Samples of a test on demand: as many as the start-up tests look at.
const DEMANDED: u32 = alea_random::health::STARTUP;

/// Slices that were ordered and nobody has taken. Relaxed: a count that orders nothing.
static ORDERED: AtomicU32 = AtomicU32::new(0);

per_cpu! {
    static COLLECTOR: RefCell<Jitter> = RefCell::new(Jitter::new());
}

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) = (size_of::<AtomicU32>(), size_of::<RefCell<Jitter>>());

/// The TSC as a source of samples.
pub struct Tsc;

impl CycleCounter for Tsc {
    fn now(&mut self) -> u64 {
        tsc::read_ordered()
    }
}

/// Mixes samples in; what they are worth, on top of what the other sources have given.
pub fn collect(so_far: EntropyBits) -> EntropyBits {
    if so_far >= EntropyBits::READY {
        let (mut jitter, mut buffer) = (Jitter::new(), samples());
        for _ in 0..EXTRA {
            // A health test cannot fail within so few samples, and nothing is credited.
            let _unhealthy = jitter.sample(&mut Tsc, &mut |sample| buffer.add(sample));
        }
        return EntropyBits(0);
    }
    for _ in 0..CHANCES {
        // Nothing else mixes at boot.
        let before = RANDOM.mixed();
        let collected = RANDOM.collect_jitter(&mut Tsc);
        stats::mixed(stats::Source::Jitter, (RANDOM.mixed() - before) as usize);
        match collected {
            Ok(report) => {
                log::info!(
                    "random: {} samples of TSC jitter, {} of them too regular",
                    report.samples,
                    report.regular
                );
                stats::stands(stats::Source::Jitter, Health::Healthy);
                stats::credited(stats::Source::Jitter, report.credit);
                return report.credit;
            }
            Err(fault) => {
                stats::failed(stats::Source::Jitter);
                log::warn!("random: {fault}");
            }
        }
    }
    stats::stands(stats::Source::Jitter, Health::Failed);
    log::error!("random: no source of entropy; waiting for user space to bring some");
    EntropyBits(0)
}

/// Orders samples, which idle CPUs take. What was ordered before and not taken is forgotten.
pub fn order() {
    ORDERED.store(SLICES, Ordering::Relaxed);
}

/// Takes one slice of samples, if any is ordered; whether there may be more. In task context. Credits nothing: how fast it
/// heals is argued for in docs/random.md.
#[inline]
pub fn sample() -> bool {
    ORDERED.load(Ordering::Relaxed) != 0 && take_slice()
}

#[cold]
fn take_slice() -> bool {
    let less = |slices: u32| slices.checked_sub(1);
    if ORDERED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
        return false;
    }
    let mut samples = [0u64; SLICE];
    COLLECTOR.with_mut(|jitter| {
        for place in &mut samples {
            if jitter.sample(&mut Tsc, &mut |sample| *place = sample).is_err() {
                // Mixed in all the same; the tests begin anew.
                *jitter = Jitter::new();
                failed();
            }
        }
        let health = if jitter.started() { Health::Healthy } else { Health::Starting };
        if stats::health(stats::Source::Jitter) != Health::Healthy {
            stats::stands(stats::Source::Jitter, health);
        }
    });
    stats::mixed(stats::Source::Jitter, size_of_val(&samples));
    RANDOM.spread_secret(Trickle::Jitter, samples.as_mut_bytes());
    true
}

/// A failure after boot: the source is not credited after three of them, and nothing that it times is.
fn failed() {
    stats::failed(stats::Source::Jitter);
    if stats::failures(stats::Source::Jitter) >= u64::from(CHANCES) {
        if stats::stands(stats::Source::Jitter, Health::Failed) {
            log::warn!("random: jitter is not credited any more: it fails the tests");
        }
        RANDOM.judge_counter(Counter::Refused);
    }
}

/// The start-up tests once more, over samples of their own, which are mixed in.
pub fn test() {
    let (mut jitter, mut buffer) = (Jitter::new(), samples());
    for _ in 0..DEMANDED {
        if jitter.sample(&mut Tsc, &mut |sample| buffer.add(sample)).is_err() {
            return failed();
        }
    }
    if stats::health(stats::Source::Jitter) != Health::Failed {
        stats::stands(stats::Source::Jitter, Health::Healthy);
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

/// Samples on their way to the pools.
pub(super) fn samples() -> Samples<impl FnMut(&[u8])> {
    Samples::new(|bytes: &[u8]| {
        stats::mixed(stats::Source::Jitter, bytes.len());
        RANDOM.mix(bytes);
    })
}
