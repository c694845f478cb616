//! A seed that the boot loader hands over.
//!
//! **Trust**: who loads the kernel can replace it, so it could know everything anyway; still,
//! `random.trust_bootloader=off` denies it credit. **Credit**: eight bits a byte. **Cost**: one hash.
//! The seed is wiped here; the loader's own copy was wiped when it was read.

use super::super::{pool, stats};
use crate::arch::boot::BootInfo;
use crate::cmdline;
use alea_random::credit::EntropyBits;
use zeroize::Zeroize;

pub fn collect(info: &mut BootInfo) {
    let Some(mut seed) = info.seed.take() else { return };
    stats::mixed(stats::Source::BootSeed, seed.len());
    pool::mix(&seed);
    let bits = EntropyBits(seed.len() as u32 * u8::BITS);
    seed.zeroize();
    if cmdline::switch("random.trust_bootloader").unwrap_or(true) {
        stats::credited(stats::Source::BootSeed, bits);
        pool::credit(bits);
    }
}
