//! Warnings about reads of urandom before the service is ready.
//!
//! Owns their number: at most ten are printed, the rest is counted and reported at readiness, as Linux
//! does. Never delays a read. Locks: none.

use super::caller;
use core::sync::atomic::{AtomicU32, Ordering};

const MOST: u32 = 10;

static WARNINGS: AtomicU32 = AtomicU32::new(0);

/// Says who read what.
pub fn warn(device: &str, bytes: usize) {
    // Relaxed: a count; nothing is published through it.
    if WARNINGS.fetch_add(1, Ordering::Relaxed) >= MOST {
        return;
    }
    let name = caller::name();
    let text = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = core::str::from_utf8(text).unwrap_or("?");
    log::warn!("random: {name}: uninitialized {device} read ({bytes} bytes read)");
}

/// Says how many warnings were not printed.
pub fn report_missed() {
    // Relaxed: as above.
    let missed = WARNINGS.load(Ordering::Relaxed).saturating_sub(MOST);
    if missed > 0 {
        log::warn!("random: {missed} urandom warning(s) missed due to ratelimiting");
    }
}
