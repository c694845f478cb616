//! At boot, a device that was asked is waited for: so long as it is worth it, and no longer.

use crate::time;
use alea_random::credit::EntropyBits;

/// Looks at a device until it has answered, for so many nanoseconds; what the answer is worth.
pub(super) fn wait_for(limit: u64, look: impl Fn() -> Option<EntropyBits>) -> EntropyBits {
    let deadline = time::since_boot_ns().saturating_add(limit);
    while time::since_boot_ns() < deadline {
        if let Some(bits) = look() {
            return bits;
        }
        core::hint::spin_loop();
    }
    EntropyBits(0)
}
