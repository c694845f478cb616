//! Devices.

pub mod random;
