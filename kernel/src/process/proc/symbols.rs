//! /proc/kallsyms, the names of the kernel's functions, and who may see where they are (`kernel.kptr_restrict`).
//!
//! The text lies in the kernel's image, where `cargo xtask build` puts it; a kernel that was built without it has none. Owns the
//! setting. Never shows an address to who opened the file without the right to see it, whoever reads it. Locks: none.

use crate::base::image;
use crate::base::setting::Setting;
use crate::fs::procfs::{ProcFile, number, register_numbers, register_stream};
use crate::mm::Sink;
use crate::mm::fallible::try_arc;
use crate::process::perf;
use crate::process::task::current::current;
use crate::sync::cond_resched;
use crate::try_format;
use crate::vfs::{Capability, FileOps, OpenFile, Whence};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

crate::setting! {
    /// `kernel.kptr_restrict`: who sees addresses of the kernel. 0: who may profile it, and who has CAP_SYSLOG; 1: only the latter;
    /// 2: nobody.
    pub static KPTR_RESTRICT = 0, 0..=2;
}

/// Digits of an address, with which each line begins.
const DIGITS: usize = 16;

/// What stands there for who may not see it.
const HIDDEN: [u8; DIGITS] = [b'0'; DIGITS];

/// The digits of where the symbol is of whose line these are the linked address's: the image has moved by `offset`.
fn moved(linked: &[u8], offset: u64) -> [u8; DIGITS] {
    let value = |digit: &u8| u64::from((char::from(*digit)).to_digit(16).unwrap_or(0));
    let address = linked.iter().fold(0, |address, digit| address << 4 | value(digit));
    let address = address.wrapping_add(offset);
    core::array::from_fn(|at| {
        let digit = address >> (4 * (DIGITS - 1 - at)) & 15;
        b"0123456789abcdef"[digit as usize]
    })
}

/// Whether the running task may see addresses of the kernel.
fn may_see() -> bool {
    let has_right = || current().cred().capable(Capability::SYSLOG);
    match KPTR_RESTRICT.get() {
        0 => perf::is_open_to_all() || has_right(),
        1 => has_right(),
        _ => false,
    }
}

struct Symbols {
    /// Decided when it is opened, as on Linux.
    shows: bool,
}

impl Symbols {
    /// Copies the line that `at` is in from there on; how much.
    fn put_line(&self, text: &[u8], at: usize, dst: &mut Sink<'_>) -> Result<usize> {
        let is_end = |byte: &u8| *byte == b'\n';
        let start = text[..at].iter().rposition(is_end).map_or(0, |before| before + 1);
        let len = text[at..].iter().position(is_end).map_or(text.len() - at, |len| len + 1);
        let behind = (at - start).min(DIGITS);
        let digits = match self.shows {
            true => moved(&text[start..(start + DIGITS).min(text.len())], image::offset()),
            false => HIDDEN,
        };
        let digits = &digits[behind..];
        match dst.put(digits)? {
            put if put < digits.len() => Ok(put),
            put => Ok(put + dst.put(&text[at + digits.len()..at + len])?),
        }
    }
}

impl FileOps for Symbols {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, pos: &mut u64) -> Result<usize> {
        let text = image::symbols();
        let mut done = 0;
        let start = usize::try_from(*pos).unwrap_or(text.len());
        while start.saturating_add(done) < text.len() && dst.remaining() != 0 {
            match self.put_line(text, start + done, dst) {
                Ok(0) => break,
                Ok(put) => done += put,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            cond_resched();
        }
        *pos = pos.saturating_add(done as u64);
        Ok(done)
    }

    fn lseek(&self, _: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        match whence {
            Whence::Set | Whence::Cur => whence.resolve(pos, 0, offset),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// The file of the setting: only who has CAP_SYS_ADMIN changes it.
struct Restrict;

impl ProcFile for Restrict {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", KPTR_RESTRICT.shown()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if !current().cred().capable(Capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        if data.is_empty() {
            return Ok(0);
        }
        let number = number(data).ok_or(Errno::EINVAL)?;
        if KPTR_RESTRICT.set(number) { Ok(data.len()) } else { Err(Errno::EINVAL) }
    }
}

pub(super) fn register() -> Result<()> {
    let open = || -> Result<Arc<dyn FileOps>> { Ok(try_arc(Symbols { shows: may_see() })?) };
    register_stream("kallsyms", 0o444, None, open)?;
    register_numbers("kernel/kptr_restrict", 0o644, try_arc(Restrict)?)
}
