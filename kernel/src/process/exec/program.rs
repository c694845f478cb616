//! [`Program`]: what is remembered of an exec, for /proc and prctl.

use super::block::Auxv;
use crate::vfs::{DenyWrite, Path};
use alloc::sync::Arc;

/// The program that a process runs; shared with its forks. While it lives, its file cannot be written.
pub struct Program {
    pub(super) file: Arc<DenyWrite>,
    /// Start and end of code, start and end of data.
    pub bounds: [u64; 4],
    pub brk_start: u64,
    pub stack_start: u64,
    pub args: (u64, u64),
    pub env: (u64, u64),
    pub(super) auxv: Auxv,
}

impl Program {
    /// Where its executable lies.
    pub fn exe(&self) -> &Path {
        self.file.file().path()
    }

    /// The auxiliary vector as /proc/PID/auxv shows it.
    pub fn auxv(&self) -> impl Iterator<Item = [u64; 2]> {
        let end = self.auxv.iter().position(|entry| entry[0] == 0).unwrap_or(0);
        self.auxv[..=end].iter().copied()
    }
}
