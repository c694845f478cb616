//! Boot of clocks and timers. No locks, no state of its own.

use super::{clock, timer};

/// Starts the clocks and the timer interrupt; the interrupt controllers are ready, interrupts off.
pub fn init(entry_tsc: u64) {
    clock::init(entry_tsc);
    timer::init();
}
