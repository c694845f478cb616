//! The time: the wall clock, as the CMOS clock tells it at boot, and the time-stamp counter.
//!
//! **Trust**: none, an attacker who knows when a machine started guesses the rest in few tries. **Credit**:
//! none. It makes two starts of one machine differ. **Cost**: 32 bytes to hash, once; the clock itself was
//! read already.
//!
//! References: Motorola MC146818 (the CMOS clock); Intel SDM, volume 3, section 19.17 (the counter). Linux
//! does the same in `random_init`.

use crate::base::boot_info::BootInfo;
use crate::base::tsc;
use crate::random::live::RANDOM;
use crate::random::stats;
use crate::time;

pub fn collect(info: &BootInfo) {
    for word in [time::realtime().as_u64(), tsc::read(), info.entry_tsc, time::tsc_hz()] {
        let bytes = word.to_le_bytes();
        stats::mixed(stats::Source::Clock, bytes.len());
        RANDOM.mix(&bytes);
    }
}
