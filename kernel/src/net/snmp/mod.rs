//! /proc/net/snmp and its like: Linux's names for the counters (`names`), and the files (`shown`).
#![forbid(unsafe_code)]

mod names;
mod shown;

pub(super) use shown::register;
