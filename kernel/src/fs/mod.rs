//! File systems, and the files that need none: each folder or file is one of them, built on `vfs`.
//!
//! Owns no memory of its own: file contents live in `mm`'s page caches. Lock order: docs/locking.md.
#![deny(unsafe_code)]

pub mod devfs;
pub mod epoll;
pub mod eventfd;
mod initramfs;
mod inotify;
pub mod pipe;
pub mod procfs;
mod start;
pub mod sysfs;
pub mod timerfd;
pub mod tmpfs;
pub mod tracefs;
pub mod uevent;

pub use inotify::inotify::{Inotify, new};
pub use start::init;
