//! What others have written, on both kernels: the test suites of BusyBox, Go and Python, Linux's for the vDSO, liburing's, strace's, gdb's, those of
//! random numbers, programs of Debian, its stress-ng, and what README says runs (`runs`).
#![forbid(unsafe_code)]

pub mod assess;
pub mod busybox;
pub mod commands;
pub mod debian;
pub mod liburing;
mod outcomes;
mod programs;
pub mod random_stats;
pub mod rooted;
pub mod runs;
pub mod runtimes;
pub mod selftests;
pub mod stress;
pub mod vdso;
