//! What the kernel says of itself: the log, the panic, how long exec's phases took.
#![deny(unsafe_code)]

pub mod exec_phases;
pub mod klog;
pub mod panic;
pub mod phase;
pub mod timeline;
