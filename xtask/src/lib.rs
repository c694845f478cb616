//! Build, boot, test and measure Alea: one module per command, and the shared parts under them.
//!
//! `tests/` uses this library too, for [`qemu`], [`guest`] and [`initramfs`]. Nothing here may write
//! outside `target/`, except the packages that `setup` installs through apt.
#![forbid(unsafe_code)]

pub mod abi;
pub mod accel;
pub mod apt;
pub mod baseline;
pub mod bench;
pub mod boot;
pub mod build;
pub mod busybox;
pub mod checking;
pub mod ci;
pub mod figures;
pub mod fuzz;
pub mod growth;
pub mod guest;
pub mod image;
pub mod initramfs;
pub mod latency;
pub mod linux;
pub mod miri;
pub mod monitor;
pub mod paths;
pub mod process;
pub mod profile;
pub mod qemu;
pub mod random_stats;
pub mod report;
pub mod run;
pub mod runtimes;
pub mod setup;
pub mod shown;
pub mod soak;
pub mod symbolize;
pub mod syscalls;
pub mod table;
pub mod term;
pub mod test;
pub mod tidy;
pub mod vdso;
