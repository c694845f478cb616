//! What looks at the running task at times of its own, in the timer's interrupt: the profiler.
//!
//! Owns when each CPU looks next. Never arms the hardware: `timer` does. Locks: none.

use super::nanos::Nanos;
use crate::sync::Once;
use core::sync::atomic::{AtomicU64, Ordering};

/// Looks: it says when it is to look again, if at all.
pub type Look = fn(Nanos) -> Option<Nanos>;

crate::per_cpu! {
    /// When this CPU looks next, or [`Nanos::NEVER`]. Relaxed: this CPU's own.
    static AT: AtomicU64 = AtomicU64::new(Nanos::NEVER.0);
}

static LOOK: Once<Look> = Once::new();

/// What looks, whatever CPU begins to.
pub fn set_look(look: Look) {
    LOOK.call_once(|| look);
}

/// When this CPU looks next.
#[inline]
pub(super) fn at() -> Nanos {
    Nanos(AT.with(|at| at.load(Ordering::Relaxed)))
}

/// This CPU looks from now on, first at that time: false if it does already. Interrupts are off.
pub(super) fn begin(first: Nanos) -> bool {
    let begins = at() == Nanos::NEVER;
    if begins {
        AT.with(|at| at.store(first.0, Ordering::Relaxed));
    }
    begins
}

/// Looks if it is time.
#[inline]
pub(super) fn look(now: Nanos) {
    if at() <= now
        && let Some(look) = LOOK.get()
    {
        let next = look(now).unwrap_or(Nanos::NEVER);
        AT.with(|at| at.store(next.0, Ordering::Relaxed));
    }
}
