//! Calls about the machine as a whole.

pub(super) mod log;
pub mod misc;
pub(super) mod random;
pub(super) mod sysrq;
