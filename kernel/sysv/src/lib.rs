//! System V IPC: the rules that need nothing of a kernel, so that they are tested on the host.
//!
//! | module | what it decides |
//! |---|---|
//! | [`numbers`] | which identifier a new object gets |
//! | [`access`] | who may use an object |
//! | [`message`] | which message a receiver gets |
//! | [`semaphore`] | what operations do to a set of semaphores, and who waits |
//!
//! Wakes nobody, takes no lock: that is the kernel's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod access;
pub mod message;
pub mod numbers;
pub mod semaphore;
