//! Numbers below /proc/sys that can be set: one, or several on one line.
//!
//! What is written after the last number is not consumed, as with Linux's `proc_dointvec_minmax`.
#![forbid(unsafe_code)]

use super::number::{next_word, number, unsigned};
use crate::base::setting::{Setting, WideSetting};
use crate::fs::procfs::file::ProcFile;
use crate::fs::procfs::fixed::register_numbers;
use crate::mm::fallible::try_arc;
use crate::{try_format, try_write};
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
        each_word(data, &self.0, |setting, word| {
            let may_be = setting.set(number(word).ok_or(Errno::EINVAL)?);
            if may_be { Ok(()) } else { Err(self.1) }
        })
    }
}

/// A line of one number that is an `unsigned long` on Linux.
pub struct Wide(pub &'static dyn WideSetting);

/// Shows `setting` at `path`, below /proc/sys.
pub fn register_wide(path: &str, setting: &'static dyn WideSetting) -> Result<()> {
    register_numbers(path, 0o644, try_arc(Wide(setting))?)
}

impl ProcFile for Wide {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.0.shown()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        each_word(data, &[self.0], |setting, word| {
            let may_be = setting.set(unsigned(word).ok_or(Errno::EINVAL)?);
            if may_be { Ok(()) } else { Err(Errno::EINVAL) }
        })
    }
}

/// Gives the settings of a line the words that are written to it, and returns how much is consumed: what stands after the last is not.
/// As on Linux, the numbers before a bad one are set.
fn each_word<S: ?Sized>(
    data: &[u8],
    settings: &[&S],
    set: impl Fn(&S, &[u8]) -> Result<()>,
) -> Result<usize> {
    let mut rest = data.trim_ascii_start();
    if rest.is_empty() && !data.is_empty() {
        return Err(Errno::EINVAL);
    }
    for setting in settings {
        let word = next_word(&mut rest);
        if word.is_empty() {
            break;
        }
        set(setting, word)?;
    }
    Ok(data.len() - rest.len())
}
