//! The initramfs: unpacking the archive, and its compression.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "boot: before any user")]
#![forbid(unsafe_code)]

mod gzip;
mod initramfs;
mod stream;

pub(super) use initramfs::{Error, unpack, unpack_built_in};
