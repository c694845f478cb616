//! Linux's x86_64 user-space ABI as checked Rust types.
//!
//! Numbers and layouts only: nothing here knows the kernel. Structures that cross the user boundary are
//! `#[repr(C)]` and derive zerocopy's traits, so that user copies need no `unsafe`.
#![no_std]
#![forbid(unsafe_code)]

pub mod errno;
pub mod filter;
pub mod fs;
pub mod ipc;
pub mod misc;
pub mod mman;
pub mod net;
pub mod perf;
pub mod process;
pub mod ptrace;
pub mod rtc;
pub mod seccomp;
pub mod signal;
pub mod socket;
pub mod time;
pub mod tty;
pub mod uring;

pub use errno::{Errno, Result, Returned};
