//! [`Pinned`]: a number below /proc/sys that Linux can change and this kernel cannot.
//!
//! Writing the value that it already has succeeds, so that a sysctl.conf may name the defaults. Another value is EINVAL, and
//! the log says why.
#![forbid(unsafe_code)]

use crate::fs::procfs::file::ProcFile;
use crate::fs::procfs::fixed::register_numbers;
use crate::mm::fallible::{TryGrow, TrySlice, try_arc};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// A number that stays.
pub struct Pinned {
    /// Below /proc/sys.
    pub path: &'static str,
    /// What the file shows, without its newline.
    pub value: &'static str,
    /// Why it is this and nothing else: the end of the sentence "it stays so, for ...".
    pub why: &'static str,
}

/// Shows each at its path.
pub fn register_pinned(all: &'static [Pinned]) -> Result<()> {
    all.iter().try_for_each(|pinned| register_numbers(pinned.path, 0o644, try_arc(pinned)?))
}

impl ProcFile for &'static Pinned {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = self.value.as_bytes().try_owned()?;
        text.try_push(b'\n')?;
        Ok(text)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        let words =
            |text| <[u8]>::split(text, u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        if words(data).eq(words(self.value.as_bytes())) {
            return Ok(data.len());
        }
        log::info!("sysctl: {} stays {}, for {}", self.path, self.value, self.why);
        Err(Errno::EINVAL)
    }
}
