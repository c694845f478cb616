//! File systems, and the kinds of file that belong to none (pipes, epoll, eventfd...), built on `vfs`. `start` mounts the
//! root and has `initramfs` unpacked into it.
//!
//! Contents of regular files live in `mm`'s page caches; a pipe has pages of its own. Lock order: docs/locking.md.
#![deny(unsafe_code)]

pub mod devfs;
pub mod epoll;
pub mod eventfd;
pub mod huge_pages;
mod initramfs;
mod inotify;
pub mod pipe;
pub mod procfs;
pub mod secretmem;
mod start;
pub mod sysfs;
pub mod timerfd;
pub mod tmpfs;
pub mod tracefs;
pub mod uevent;

pub use inotify::inotify::{Inotify, new};
pub use start::init;
