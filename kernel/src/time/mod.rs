//! Clocks and timers.
#![forbid(unsafe_code)]

/// Nanoseconds since boot, zero before the clock is calibrated.
pub fn since_boot_ns() -> u64 {
    0
}

/// Spins, for a panic's delay before a reboot.
pub fn busy_wait_seconds(_seconds: u64) {}
