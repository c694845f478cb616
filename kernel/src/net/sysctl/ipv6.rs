//! Whether interfaces have IPv6 addresses: `net.ipv6.conf.NAME.disable_ipv6`.
//!
//! Owns the three values. Never ends a connection that is there: its two ends are one machine, and it goes on. Locks: none.

use crate::fs::procfs::{ProcFile, number, register_numbers};
use crate::mm::fallible::try_arc;
use crate::try_format;
use abi::Result;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, Ordering};

// Relaxed, all: they decide nothing but later calls.
static ALL: AtomicI32 = AtomicI32::new(0);
static DEFAULT: AtomicI32 = AtomicI32::new(0);
static LO: AtomicI32 = AtomicI32::new(0);

/// Whether the loopback has an IPv6 address.
#[inline]
pub fn is_there() -> bool {
    LO.load(Ordering::Relaxed) == 0
}

/// A file: its own value, then what else is set with it.
struct Disable(&'static [&'static AtomicI32]);

impl ProcFile for Disable {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.0[0].load(Ordering::Relaxed)).map(String::into_bytes)
    }

    /// What is no number sets the value that is there once more, as on Linux.
    fn write(&self, data: &[u8]) -> Result<usize> {
        let value = number(data).unwrap_or_else(|| self.0[0].load(Ordering::Relaxed));
        self.0.iter().for_each(|one| one.store(value, Ordering::Relaxed));
        Ok(data.len())
    }
}

static FILES: [(&str, &[&AtomicI32]); 3] = [
    ("net/ipv6/conf/all/disable_ipv6", &[&ALL, &DEFAULT, &LO]),
    ("net/ipv6/conf/default/disable_ipv6", &[&DEFAULT]),
    ("net/ipv6/conf/lo/disable_ipv6", &[&LO]),
];

/// Adds the files to /proc.
pub fn register() -> Result<()> {
    FILES
        .iter()
        .try_for_each(|(path, values)| register_numbers(path, 0o644, try_arc(Disable(values))?))
}
