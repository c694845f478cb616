//! Raw samples of jitter on a hosted x86_64 machine, as the collector takes them, for those who assess their entropy.
//!
//! `raw_jitter N` prints the low eight bits of the first N samples of a collection in hexadecimal, and what became of it.
//! The samples are hashed between as a kernel would, 64 at a time: that work is a part of what the source does.

use std::fmt::Write;

use alea_random::credit::EntropyBits;
use alea_random::jitter::{CycleCounter, Jitter, SAMPLES_PER_BIT};
use alea_random::pool::Pool;

/// The time-stamp counter, read as a kernel does; on other machines none.
struct Counter;

impl CycleCounter for Counter {
    #[cfg(target_arch = "x86_64")]
    fn now(&mut self) -> u64 {
        // SAFETY: a fence and the reading of a counter, which every x86_64 CPU has.
        unsafe {
            core::arch::x86_64::_mm_lfence();
            core::arch::x86_64::_rdtsc()
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn now(&mut self) -> u64 {
        0 // Stands still, and so is refused.
    }
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).expect("raw_jitter N");
    let (mut samples, mut wider) = (Vec::with_capacity(count), 0);
    let (mut pool, mut waiting) = (Pool::new(), Vec::with_capacity(512));
    let wanted = EntropyBits(count.div_ceil(SAMPLES_PER_BIT as usize) as u32);
    let collected = Jitter::new().collect(&mut Counter, wanted, |sample| {
        waiting.extend_from_slice(&sample.to_ne_bytes());
        if waiting.len() == 512 {
            pool.mix(&waiting);
            waiting.clear();
        }
        if samples.len() < count {
            samples.push(sample as u8);
            wider += u32::from(sample > 255);
        }
    });
    let mut text = String::new();
    for line in samples.chunks(64) {
        text.push_str("raw ");
        for byte in line {
            write!(text, "{byte:02x}").expect("a string takes all");
        }
        text.push('\n');
    }
    let shown = samples.len();
    match collected {
        Ok(report) => println!(
            "{text}jitter shown {shown} wider {wider} taken {} regular {}",
            report.samples, report.regular
        ),
        Err(fault) => println!("{text}jitter shown {shown} wider {wider} refused: {fault}"),
    }
}
