//! The shared page of zeros, which stands for anonymous memory that was never written.
//!
//! Owns it. Never written to: entries that map it lack `WRITABLE`. Never counted: they hold no reference. Locks: none.

use super::frames;
use super::pfn::{For, Pfn};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU32, Ordering};

/// Relaxed: written once at boot, before any address space exists.
static ZERO: AtomicU32 = AtomicU32::new(0);

/// Makes the page; called once at boot.
pub(in crate::mm) fn init() {
    match frames::alloc_zeroed(Owner::Kernel, For::Kernel) {
        Some(frame) => ZERO.store(frame.0, Ordering::Relaxed),
        None => panic!("no memory for the zero page"),
    }
}

/// The page. Nobody writes to it, and page tables that map it hold no reference.
#[inline]
pub(in crate::mm) fn frame() -> Pfn {
    Pfn(ZERO.load(Ordering::Relaxed))
}
