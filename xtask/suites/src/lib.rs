//! Test suites that others have written: BusyBox's, Go's and Python's, Linux's for the vDSO, and those of random numbers.
#![forbid(unsafe_code)]

pub mod assess;
pub mod busybox;
pub mod commands;
pub mod random_stats;
pub mod runtimes;
pub mod vdso;
