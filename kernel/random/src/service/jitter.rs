//! Jitter on its way into the pools.
//!
//! Owns the buffer that samples wait in, which it wipes. Lock rules: those of [`super`].

use core::fmt;

use super::{Platform, Service};
use crate::block::wipe::wipe;
use crate::credit::EntropyBits;
use crate::health::Counter;
use crate::jitter::{CycleCounter, Jitter, JitterFault, JitterReport};

/// Samples on their way to a pool, some at a time because mixing has a cost for each call. What is still there when it is
/// dropped goes, too.
pub struct Samples<F: FnMut(&[u8])> {
    samples: [[u8; 8]; 64],
    len: usize,
    mix: F,
}

impl<F: FnMut(&[u8])> Samples<F> {
    /// No samples yet, for `mix`.
    pub const fn new(mix: F) -> Self {
        Self { samples: [[0; 8]; 64], len: 0, mix }
    }

    /// Takes one more.
    pub fn add(&mut self, sample: u64) {
        self.samples[self.len] = sample.to_le_bytes();
        self.len += 1;
        if self.len == self.samples.len() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        (self.mix)(self.samples[..self.len].as_flattened());
        wipe(&mut self.samples);
        self.len = 0;
    }
}

impl<F: FnMut(&[u8])> Drop for Samples<F> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.flush();
        }
    }
}

impl<F: FnMut(&[u8])> fmt::Debug for Samples<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Samples").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<P: Platform> Service<P> {
    /// Mixes in enough jitter to be ready by that alone: some milliseconds. What it is worth, to be
    /// [credited](Self::credit). A counter that fails is [refused](Self::counter), until a collection succeeds.
    pub fn collect_jitter(
        &self,
        counter: &mut impl CycleCounter,
    ) -> Result<JitterReport, JitterFault> {
        let mut samples = Samples::new(|bytes: &[u8]| self.mix(bytes));
        let collected =
            Jitter::new().collect(counter, EntropyBits::READY, |sample| samples.add(sample));
        // Whatever came is mixed in before anything is credited.
        drop(samples);
        self.judge_counter(if collected.is_ok() { Counter::Usable } else { Counter::Refused });
        collected
    }
}
