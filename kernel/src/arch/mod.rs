//! The architecture: what names x86_64 lives below this folder, and in `base` below it.
//!
//! Owns boot entries, traps, the context switch, raw user access, interrupt controllers and counters.
//! It must never call a higher floor directly: upper floors register hooks (`entry::trap::TrapHooks`,
//! `irq::register`). No locks except those each file names.

#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use x86_64::*;
