//! procfs: the generic machinery, and the files that are about no process.
//!
//! Fixed files are registered by path, at boot or later. Process directories are dynamic: what is in them
//! comes through [`ProcessTable`], which the process floor fills.
#![forbid(unsafe_code)]

mod process;

pub use process::{PidEntry, PidFile, ProcessTable, register_process_table};

use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A fixed file of /proc.
pub trait ProcFile: Send + Sync {
    /// The whole text; asked for again whenever a reader starts from the beginning.
    fn read(&self) -> Result<Vec<u8>>;
    /// Takes what one `write` wrote.
    fn write(&self, _data: &[u8]) -> Result<usize> {
        Err(Errno::EIO)
    }
}

/// Adds a file below /proc; `path` like `sys/kernel/hostname`, directories are made as needed.
pub fn register_file(_path: &str, _mode: u32, _file: Arc<dyn ProcFile>) -> Result<()> {
    Ok(())
}
