//! Speculation: which flaws of speculative execution a CPU has, and what is said of them.
//!
//! Owns the tables of CPU models and the rules by which Linux 6.12 decides from CPUID, IA32_ARCH_CAPABILITIES, family, model
//! and stepping, so that the same code runs in the kernel and, over the facts of CPUs that nobody has at hand, on the host.
//! It must never read a register itself, and never say that something is mitigated that [`Done`] does not name.
//!
//! | module | what it decides |
//! |---|---|
//! | [`models`] | what Linux's two tables say of a model |
//! | [`flaws`] | which flaws a CPU has |
//! | [`choose`] | what is done against them |
//! | [`predictors`] | Spectre v2 and speculative store bypass: for the kernel, for all, and for tasks that ask |
//! | [`files`] | the files of `/sys/devices/system/cpu/vulnerabilities`, and their words |
//!
//! # Locks
//!
//! None: everything is a value.
#![no_std]
#![forbid(unsafe_code)]

pub mod choose;
pub mod files;
pub mod flaws;
pub mod models;
pub mod predictors;

pub use choose::{Asked, Buffers, Done, Tsa};
pub use files::{FILES, File, Line};
pub use flaws::{Facts, Flaws};
pub use predictors::{Choice, Predictors, Refusal};
