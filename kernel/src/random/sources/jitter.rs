//! The jitter of the time-stamp counter: the source of machines that have no other.
//!
//! **Trust**, **cost** and **credit**: see [`alea_random::jitter`]. At boot it always contributes a few
//! uncredited samples, and runs until the service is ready where nothing else made it so. A counter that
//! fails the health tests is given three chances; then the service stays as it is and says so.

use super::super::{pool, stats};
use crate::arch::tsc;
use alea_random::credit::{EntropyBits, State};
use alea_random::jitter::{CycleCounter, Jitter};

/// Samples mixed in on machines that are ready without them.
const EXTRA: u32 = 64;
const CHANCES: u32 = 3;

/// The TSC as a source of samples.
pub struct Tsc;

impl CycleCounter for Tsc {
    fn now(&mut self) -> u64 {
        tsc::read_ordered()
    }
}

pub fn collect() {
    if pool::state() == State::Ready {
        let mut jitter = Jitter::new(&mut Tsc);
        for _ in 0..EXTRA {
            // A health test cannot fail within so few samples, and nothing is credited.
            let _unhealthy = jitter.sample(&mut Tsc, &mut mix);
        }
        return;
    }
    for _ in 0..CHANCES {
        match Jitter::new(&mut Tsc).collect(&mut Tsc, EntropyBits::READY, mix) {
            Ok(report) => {
                log::info!(
                    "random: {} samples of TSC jitter, {} of them too regular",
                    report.samples,
                    report.regular
                );
                stats::credited(stats::Source::Jitter, report.credit);
                pool::credit(report.credit);
                return;
            }
            Err(fault) => {
                stats::failed(stats::Source::Jitter);
                log::warn!("random: {fault}");
            }
        }
    }
    log::error!("random: no source of entropy; waiting for interrupts or for user space");
}

fn mix(sample: u64) {
    stats::mixed(stats::Source::Jitter, size_of_val(&sample));
    pool::mix(&sample.to_le_bytes());
}
