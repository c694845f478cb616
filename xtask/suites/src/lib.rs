//! Test suites that others have written: BusyBox's, Go's and Python's, Linux's for the vDSO, those of random numbers; and what README
//! says runs (`runs`).
#![forbid(unsafe_code)]

pub mod assess;
pub mod busybox;
pub mod commands;
pub mod random_stats;
pub mod runs;
pub mod runtimes;
pub mod vdso;
