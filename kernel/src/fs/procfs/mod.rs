//! procfs: the generic machinery, and the files that are about no process.
//!
//! Fixed files are registered by path, at boot or later, and live in the dentry tree like any others.
//! Process directories are dynamic: what is in them comes through [`ProcessTable`], which the process floor
//! fills. Texts are made when a reader starts at the beginning and kept for the open file, so that a file
//! read in pieces is of one moment.
#![forbid(unsafe_code)]

pub(in crate::fs) mod fixed;
mod fs_files;
mod mounts;
mod node;
mod pid;
mod process;
mod system;
mod text;

pub use fixed::{add_directory, register_file, super_block};
pub use node::process_of;
pub use process::{CpuTotals, PidFile, ProcessTable, Totals, mounts_text, register_process_table};
pub use text::TextBuf;

use abi::{Errno, Result};
use alloc::vec::Vec;

/// A fixed file of /proc (or /sys).
pub trait ProcFile: Send + Sync {
    /// The whole text; asked for again whenever a reader starts from the beginning.
    fn read(&self) -> Result<Vec<u8>>;
    /// Takes what one `write` wrote.
    fn write(&self, _data: &[u8]) -> Result<usize> {
        Err(Errno::EIO)
    }
}

/// Registers proc and its own files.
pub fn init() -> Result<()> {
    super::registry::register("proc", |_| super_block());
    system::register()?;
    fs_files::register()?;
    for directory in ["sys/fs", "sys/net", "sys/dev", "fs", "bus", "driver", "irq", "tty/driver"] {
        add_directory(directory)?;
    }
    Ok(())
}
