//! Devices.

pub mod console_device;
pub mod random;
pub mod tty;
pub mod uart;
pub mod vport;
