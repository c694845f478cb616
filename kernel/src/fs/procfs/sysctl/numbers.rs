//! Numbers below /proc/sys that can be set: one, or several on one line.
//!
//! What is written after the last number is not consumed, as with Linux's `proc_dointvec_minmax`.
#![forbid(unsafe_code)]

use super::number::{next_word, number};
use crate::base::setting::Setting;
use crate::fs::procfs::file::ProcFile;
use crate::fs::procfs::fixed::register_numbers;
use crate::mm::fallible::try_arc;
use crate::try_write;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

/// The settings of a line, and the error for a number that its setting does not accept.
pub struct Several<const N: usize>(pub [&'static dyn Setting; N], pub Errno);

/// Shows `setting` at `path`, below /proc/sys: a line of one.
pub fn register_setting(path: &str, setting: &'static dyn Setting) -> Result<()> {
    register_settings(path, Several([setting], Errno::EINVAL))
}

/// Shows `line` at `path`, below /proc/sys.
pub fn register_settings<const N: usize>(path: &str, line: Several<N>) -> Result<()> {
    register_numbers(path, 0o644, try_arc(line)?)
}

impl<const N: usize> ProcFile for Several<N> {
    fn read(&self) -> Result<Vec<u8>> {
        let mut out = String::new();
        for (at, setting) in self.0.iter().enumerate() {
            let end = if at + 1 == N { '\n' } else { '\t' };
            try_write!(out, "{}{end}", setting.shown())?;
        }
        Ok(out.into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        let mut rest = data.trim_ascii_start();
        if rest.is_empty() && !data.is_empty() {
            return Err(Errno::EINVAL);
        }
        for setting in self.0 {
            let word = next_word(&mut rest);
            if word.is_empty() {
                break;
            }
            // As on Linux, the numbers before a bad one are set.
            if !setting.set(number(word).ok_or(Errno::EINVAL)?) {
                return Err(self.1);
            }
        }
        // What stands after the last number is not consumed.
        Ok(data.len() - rest.len())
    }
}
