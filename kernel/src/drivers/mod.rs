//! Devices.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]

pub mod random;
pub mod tty;
pub mod uart;
pub mod vport;
