//! A seed that the boot loader hands over.
//!
//! **Trust**: who loads the kernel can replace it, so it could know everything anyway; still,
//! `random.trust_bootloader=off` denies it credit. **Credit**: eight bits a byte. **Cost**: one hash.
//! The seed is wiped here; the loader's own copy was wiped when it was read.

use crate::base::boot_info::BootInfo;
use crate::cmdline;
use crate::random::{pool, stats};
use alea_random::credit::EntropyBits;
use zeroize::Zeroize;

pub fn collect(info: &mut BootInfo) {
    if let Some(mut seed) = info.seed.take() {
        absorb(&mut seed);
    }
}

/// Mixes in, credits and wipes a seed that came from whoever started this machine.
pub(super) fn absorb(seed: &mut [u8]) {
    stats::mixed(stats::Source::BootSeed, seed.len());
    pool::mix(seed);
    seed.zeroize();
    let bytes = u32::try_from(seed.len()).unwrap_or(u32::MAX);
    let bits = EntropyBits(bytes.saturating_mul(u8::BITS)).min(EntropyBits::READY);
    if cmdline::switch("random.trust_bootloader").unwrap_or(true) {
        stats::credited(stats::Source::BootSeed, bits);
        pool::credit(bits);
    }
}
