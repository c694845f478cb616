//! The atomics of this crate: `core`'s, or loom's when `--cfg alea_loom` explores interleavings.
//!
//! Owns nothing. No other module names `core::sync::atomic` or loom.

#[cfg(not(alea_loom))]
pub(crate) use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(alea_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
