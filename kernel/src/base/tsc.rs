//! The time-stamp counter. Owns nothing; `time` keeps the scale. Never orders itself against other instructions unless
//! asked to (`read_ordered`). Locks: none.

use core::arch::asm;

/// The counter, not ordered against other instructions.
#[inline]
pub fn read() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter; the upper halves of both registers become zero.
    unsafe {
        asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags))
    };
    high << 32 | low
}

/// The counter, read after all earlier instructions have completed.
#[inline]
pub fn read_ordered() -> u64 {
    // SAFETY: LFENCE orders; it has no other effect.
    unsafe { asm!("lfence", options(nomem, nostack, preserves_flags)) };
    read()
}
