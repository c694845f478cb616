//! Which ports a socket gets that asks for any, and which need no capability: `net.ipv4.ip_local_port_range` and
//! `ip_unprivileged_port_start`.
//!
//! Owns both. Never changes what is bound already. Locks: none; the two ends of the range are one word, so that nobody sees one of an old
//! range with one of a new.

use crate::fs::procfs::{ProcFile, number, register_numbers};
use crate::mm::fallible::try_arc;
use crate::try_format;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

// Relaxed, both: they decide nothing but later calls.
/// The first port in the upper half, the last in the lower one.
static EPHEMERAL: AtomicU32 = AtomicU32::new(32768 << 16 | 60999);
static UNPRIVILEGED: AtomicU16 = AtomicU16::new(1024);

/// The range of ephemeral ports.
pub fn ephemeral() -> RangeInclusive<u16> {
    let both = EPHEMERAL.load(Ordering::Relaxed);
    (both >> 16) as u16..=both as u16
}

/// The first port that needs no capability.
pub fn first_unprivileged() -> u16 {
    UNPRIVILEGED.load(Ordering::Relaxed)
}

/// Adds the two files to /proc.
pub fn register() -> Result<()> {
    register_numbers("net/ipv4/ip_local_port_range", 0o644, try_arc(Ephemeral)?)?;
    register_numbers("net/ipv4/ip_unprivileged_port_start", 0o644, try_arc(Unprivileged)?)
}

struct Ephemeral;

impl ProcFile for Ephemeral {
    fn read(&self) -> Result<Vec<u8>> {
        let range = ephemeral();
        try_format!("{}\t{}\n", range.start(), range.end()).map(alloc::string::String::into_bytes)
    }

    /// Two numbers, or the first alone. `EINVAL` for an empty range and for one that begins at 0 or below the unprivileged ports.
    fn write(&self, data: &[u8]) -> Result<usize> {
        let range = ephemeral();
        let mut words =
            data.split(|byte| matches!(byte, b' ' | b'\t' | b'\n')).filter(|word| !word.is_empty());
        let first = port(words.next().ok_or(Errno::EINVAL)?)?;
        let last = words.next().map_or(Ok(*range.end()), port)?;
        if first == 0 || last < first || first < first_unprivileged() {
            return Err(Errno::EINVAL);
        }
        EPHEMERAL.store(u32::from(first) << 16 | u32::from(last), Ordering::Relaxed);
        Ok(data.len())
    }
}

struct Unprivileged;

impl ProcFile for Unprivileged {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", first_unprivileged()).map(alloc::string::String::into_bytes)
    }

    /// `EINVAL` for one above the first ephemeral port.
    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let first = port(data)?;
        if first > *ephemeral().start() {
            return Err(Errno::EINVAL);
        }
        UNPRIVILEGED.store(first, Ordering::Relaxed);
        Ok(data.len())
    }
}

fn port(text: &[u8]) -> Result<u16> {
    number(text).and_then(|number| u16::try_from(number).ok()).ok_or(Errno::EINVAL)
}
