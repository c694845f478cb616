//! Measurements that every floor may take: exec phases and counters.
#![deny(unsafe_code)]

pub mod exec_phases;
