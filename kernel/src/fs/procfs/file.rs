//! [`ProcFile`]: what one fixed file of /proc says, and the boot of procfs.
//!
//! Owns nothing: `fixed` keeps what is registered. No locks.

use super::fixed::{add_directory, super_block};
use super::{fs_files, system};
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
    crate::vfs::registry::register("proc", |_| super_block());
    system::register()?;
    fs_files::register()?;
    for directory in ["sys/fs", "sys/net", "sys/dev", "fs", "bus", "driver", "irq", "tty/driver"] {
        add_directory(directory)?;
    }
    Ok(())
}
