//! What `uname` says. Programs compare the release with the Linux release whose system calls they need.

/// The Linux release whose ABI this kernel has, marked as Alea's.
pub const RELEASE: &str = concat!("6.12.0-alea-", env!("CARGO_PKG_VERSION"));
/// Build description.
pub const VERSION: &str = "#1 SMP PREEMPT_NONE";
