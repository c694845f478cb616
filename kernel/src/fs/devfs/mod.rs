//! /dev: the devtmpfs (`devfs`), and the devices that are the kernel's own (`mem`, `kmsg`).
#![forbid(unsafe_code)]

mod devfs;
pub mod kmsg;
mod mem;
mod start;

pub use devfs::register_char;
pub(super) use devfs::super_block;
pub(super) use start::init;
