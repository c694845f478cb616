//! The machine: everything that names x86_64 lives below this folder.
//!
//! Owns boot entries, traps, the context switch, raw user access, interrupt controllers, counters
//! and power. It must never call a higher floor directly: upper floors register hooks
//! (`trap::TrapHooks`, `irq::register`). No locks except those each file names.

#[cfg_attr(target_arch = "x86_64", path = "x86_64/mod.rs")]
mod machine;

pub use machine::*;
