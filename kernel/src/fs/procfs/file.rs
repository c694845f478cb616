//! [`ProcFile`]: what one fixed file of /proc (or /sys) says. `fixed` keeps those that are registered.

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
    /// Whether it is numbers, which below /proc/sys are read and written from the beginning only.
    fn is_numbers(&self) -> bool {
        false
    }
}
