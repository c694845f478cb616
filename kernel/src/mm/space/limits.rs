//! What the running program may map: `RLIMIT_AS`, `RLIMIT_DATA` and `RLIMIT_STACK`.
//!
//! They belong to a process, and several processes may share an address space: so they are asked for when they count. Owns the
//! slot through which that is asked. Never keeps one. No locks.

use super::request::MmLimits;
use crate::sync::Once;

/// Those of the running process; the process floor knows.
static LIMITS: Once<fn() -> MmLimits> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_limits(limits: fn() -> MmLimits) {
    LIMITS.call_once(|| limits);
}

/// Those of the running process.
pub(super) fn limits() -> MmLimits {
    LIMITS.get().map_or_else(MmLimits::default, |limits| limits())
}
