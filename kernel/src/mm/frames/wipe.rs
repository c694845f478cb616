//! `init_on_alloc=1` and `init_on_free=1`, as on Linux: what the kernel takes for itself is zeroed when it is taken, and all memory
//! when it is given back.
//!
//! Owns the two settings. While one is on, no CPU keeps free objects or frames, as while faults are injected, so that all of them
//! take the slow paths, which ask here; while both are off only the slow paths look. User pages and page tables hold zeros
//! when they are handed out in any case. Never changed once init runs. Locks: none.

use super::inject;
use core::sync::atomic::{AtomicBool, Ordering};

/// Relaxed: made once at boot, before other CPUs allocate.
static ON_ALLOC: AtomicBool = AtomicBool::new(false);
static ON_FREE: AtomicBool = AtomicBool::new(false);

/// Says what is to be zeroed.
pub fn set(on_alloc: bool, on_free: bool) {
    ON_ALLOC.store(on_alloc, Ordering::Relaxed);
    ON_FREE.store(on_free, Ordering::Relaxed);
}

/// Whether what is taken is zeroed.
#[inline]
pub fn on_alloc() -> bool {
    ON_ALLOC.load(Ordering::Relaxed)
}

/// Whether what is given back is zeroed.
#[inline]
pub fn on_free() -> bool {
    ON_FREE.load(Ordering::Relaxed)
}

/// Whether nothing free may be kept by a CPU.
#[inline]
pub fn keeps_none() -> bool {
    on_alloc() || on_free() || inject::on()
}
