//! Calls about tasks: birth, end, credentials, scheduling.

pub(super) mod cred;
pub(super) mod ioprio;
pub(super) mod kcmp;
pub(super) mod perf;
pub(super) mod pidfd;
mod prctl_caps;
mod prctl_speculation;
pub(super) mod process;
pub(super) mod rseq;
pub(super) mod sched;
pub(super) mod sched_policy;
pub(super) mod seccomp;
pub(super) mod trace;
pub(super) mod unshare;
pub(super) mod wait;
