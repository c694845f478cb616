//! The atomics of this crate: `core`'s, or loom's when `--cfg alea_loom` explores interleavings; where the CPU has none of
//! 64 bits, those of `portable-atomic`.
//!
//! Owns nothing. No other module names `core::sync::atomic` or loom.

#[cfg(not(alea_loom))]
pub(crate) use core::sync::atomic::{AtomicU8, Ordering};

#[cfg(all(not(alea_loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(alea_loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(all(not(alea_loom), not(target_has_atomic = "64")))]
pub(crate) use portable_atomic::AtomicU64;
