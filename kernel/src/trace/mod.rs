//! Measurements that every floor may take: exec phases, and when they ran.
#![deny(unsafe_code)]

pub mod exec_phases;
pub mod timeline;
