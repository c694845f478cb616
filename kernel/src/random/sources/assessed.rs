//! Raw samples of jitter for an assessment by NIST SP 800-90B: taken where and as those are that get credit.
//!
//! `alea.jitter_samples=N` on the command line has the same call of [`Jitter::collect`], at the same place of the boot, with
//! the same hashing between the samples, take at least N samples. The low eight bits of the first N, which is what NIST's
//! estimators take, go to the serial line in hexadecimal, and then the machine is switched off. Cutting a sample down
//! can only lower its entropy. `cargo xtask assess` reads them.
//!
//! Owns nothing. Never lets a program run, or anything be drawn, on a machine whose samples were shown. Locks: the pools'.
#![expect(clippy::disallowed_methods, reason = "to the serial line, without memory")]
#![forbid(unsafe_code)]

use super::jitter::{Tsc, samples as on_their_way};
use crate::base::console::EarlyWriter;
use crate::cmdline::{self, words};
use crate::machine::power;
use crate::mm::fallible::TryVec;
use alea_random::credit::EntropyBits;
use alea_random::jitter::{Jitter, SAMPLES_PER_BIT};
use alloc::vec::Vec;
use core::fmt::{Display, Write};

/// Samples in a line of output.
const IN_LINE: usize = 64;

/// Samples that one boot may be asked to show.
pub(super) const MOST: i64 = 16 << 20;

/// What a collection came to: how many samples were taken for the credit, and those among them that did not count.
pub(super) struct Collected {
    pub taken: u32,
    pub regular: u32,
}

/// Returns where the command line does not ask for samples.
pub fn show_if_asked() {
    if let Some(count) = cmdline::number(words::JITTER_SAMPLES) {
        show_and_power_off(count.clamp(1, MOST) as u32);
    }
}

/// Takes `count` samples, shows them and what the collection came to, and switches the machine off.
fn show_and_power_off(count: u32) -> ! {
    let mut samples = places(count);
    let (mut taken, mut wider) = (0u32, 0u32);
    let mut places = samples.iter_mut();
    let mut buffer = on_their_way();
    let wanted = EntropyBits(count.div_ceil(SAMPLES_PER_BIT));
    let collected = Jitter::new().collect(&mut Tsc, wanted, |sample| {
        buffer.add(sample);
        if let Some(place) = places.next() {
            *place = sample as u8;
            taken += 1;
            wider += u32::from(sample > u64::from(u8::MAX));
        }
    });
    let collected =
        collected.map(|report| Collected { taken: report.samples, regular: report.regular });
    show("jitter", &samples[..taken as usize], wider, collected)
}

/// Room for `count` samples. Without it there is nothing to be done on this machine.
pub(super) fn places(count: u32) -> Vec<u8> {
    let mut samples: Vec<u8> = Vec::new();
    if samples.try_resize(count as usize, 0).is_err() {
        log::error!("random: no memory for {count} samples");
        power::power_off();
    }
    samples
}

/// Shows samples of the source `what`, of which so many were wider than what is shown, and switches the machine off.
pub(super) fn show(
    what: &str,
    samples: &[u8],
    wider: u32,
    collected: Result<Collected, impl Display>,
) -> ! {
    let shown = samples.len();
    let mut out = EarlyWriter;
    // What `write!` to the serial line returns is always success.
    let _ = writeln!(out);
    for line in samples.chunks(IN_LINE) {
        let _ = write!(out, "raw ");
        for byte in line {
            let _ = write!(out, "{byte:02x}");
        }
        let _ = writeln!(out);
    }
    let _ = match collected {
        Ok(Collected { taken, regular }) => {
            writeln!(out, "{what} shown {shown} wider {wider} taken {taken} regular {regular}")
        }
        Err(fault) => writeln!(out, "{what} shown {shown} wider {wider} refused: {fault}"),
    };
    power::power_off()
}
