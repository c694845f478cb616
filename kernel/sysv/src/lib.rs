//! System V IPC: the rules that need nothing of a kernel, so that they are tested on the host.
//!
//! | module | what it decides |
//! |---|---|
//! | [`numbers`] | which identifier a new object gets |
//! | [`access`] | who may use an object |
//!
//! Owns no object, wakes nobody, takes no lock.
#![no_std]
#![forbid(unsafe_code)]

pub mod access;
pub mod numbers;
