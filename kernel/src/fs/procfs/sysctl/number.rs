//! Numbers below /proc/sys that can be set.
//!
//! A write is read as Linux's `proc_dointvec_minmax` reads it: one number, decimal or with 0x or 0 in front, with space
//! around it.
#![forbid(unsafe_code)]

use crate::base::setting::Setting;
use crate::fs::procfs::file::ProcFile;
use crate::fs::procfs::fixed::register_file;
use crate::mm::fallible::try_arc;
use crate::try_format;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

struct Number(&'static dyn Setting);

/// Shows `setting` at `path`, below /proc.
pub fn register_setting(path: &str, setting: &'static dyn Setting) -> Result<()> {
    register_file(path, 0o644, try_arc(Number(setting))?)
}

impl ProcFile for Number {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.0.shown()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let number = number(data).ok_or(Errno::EINVAL)?;
        if self.0.set(number) { Ok(data.len()) } else { Err(Errno::EINVAL) }
    }
}

/// The digits of a number and the base that their prefix stands for: 0x, 0, or none for decimal.
pub fn by_prefix(text: &str) -> (&str, u32) {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    }
}

/// A number with space around it, as these files take it.
pub fn number(data: &[u8]) -> Option<i32> {
    let text = core::str::from_utf8(data.trim_ascii()).ok()?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, base) = by_prefix(digits);
    // Not a sign of its own, which `from_str_radix` would take.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let size = i64::from_str_radix(digits, base).ok()?;
    i32::try_from(if is_negative { -size } else { size }).ok()
}
