//! The time-stamp counter. Owns nothing; `time` keeps the scale.

use core::arch::asm;

/// The counter, not ordered against other instructions.
#[inline]
pub fn read() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// The counter, read after all earlier instructions have completed.
#[inline]
pub fn read_ordered() -> u64 {
    // SAFETY: LFENCE orders; it has no other effect.
    unsafe { asm!("lfence", options(nomem, nostack, preserves_flags)) };
    read()
}
