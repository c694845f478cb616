//! Who may send echo requests without privilege: `net.ipv4.ping_group_range`.
//!
//! Owns the range of groups. Never changes what is open already. Locks: none; the two ends are one word, so that nobody sees one of an
//! old range with one of a new.

use crate::fs::procfs::{ProcFile, by_prefix, next_word, register_numbers};
use crate::mm::fallible::try_arc;
use crate::try_format;
use crate::vfs::Cred;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// The first group in the upper half, the last in the lower one. Relaxed: it decides nothing but later calls.
static RANGE: AtomicU64 = AtomicU64::new(NOBODY);
/// An empty range.
const NOBODY: u64 = 1 << 32;
/// The last number that a group may have.
const LAST: u64 = u32::MAX as u64 - 1;

fn range() -> (u32, u32) {
    let both = RANGE.load(Ordering::Relaxed);
    ((both >> 32) as u32, both as u32)
}

/// Whether one of the caller's groups is in the range: privileges do not count.
pub fn may_ping(who: &Cred) -> bool {
    let (first, last) = range();
    let is_in = |group: u32| (first..=last).contains(&group);
    let first_of_others = || who.groups.partition_point(|&group| group < first);
    first <= last
        && (is_in(who.egid) || who.groups.get(first_of_others()).copied().is_some_and(is_in))
}

/// Adds the file to /proc.
pub fn register() -> Result<()> {
    register_numbers("net/ipv4/ping_group_range", 0o644, try_arc(Groups)?)
}

struct Groups;

impl ProcFile for Groups {
    fn read(&self) -> Result<Vec<u8>> {
        let (first, last) = range();
        try_format!("{first}\t{last}\n").map(String::into_bytes)
    }

    /// Two numbers, or the first alone. A range that ends before it begins is empty.
    fn write(&self, data: &[u8]) -> Result<usize> {
        let mut rest = data.trim_ascii_start();
        if rest.is_empty() {
            return if data.is_empty() { Ok(0) } else { Err(Errno::EINVAL) };
        }
        let (first, last) = range();
        let mut ends = [first, last].map(u64::from);
        for value in &mut ends {
            let word = next_word(&mut rest);
            if !word.is_empty() {
                *value = group(word)?;
            }
        }
        let [first, last] = ends;
        let both = if last < first { NOBODY } else { first << 32 | last };
        RANGE.store(both, Ordering::Relaxed);
        // What stands after the second number is not consumed.
        Ok(data.len() - rest.len())
    }
}

fn group(word: &[u8]) -> Result<u64> {
    let text = core::str::from_utf8(word).map_err(|_| Errno::EINVAL)?;
    let (digits, base) = by_prefix(text);
    // A sign is refused, which `from_str_radix` would take.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return Err(Errno::EINVAL);
    }
    let number = u64::from_str_radix(digits, base).map_err(|_| Errno::EINVAL)?;
    if number <= LAST { Ok(number) } else { Err(Errno::EINVAL) }
}
