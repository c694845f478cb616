//! Guests: QEMU, from its command line (`qemu`, `accel`) to a machine that runs (`guest`, `monitor`), or stands and is looked into (`gdb`), and what was left of it
//! (`outcome`, `symbolize`); and the initramfs that it gets.
//!
//! `tests/` uses this library too.
#![forbid(unsafe_code)]

pub mod accel;
pub mod fake_rng;
pub mod fake_tpm;
pub mod gdb;
pub mod guest;
pub mod initramfs;
pub mod inject;
pub mod kallsyms;
pub mod monitor;
pub mod outcome;
pub mod qemu;
pub mod relocs;
pub mod symbolize;
