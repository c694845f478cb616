//! Files below /proc/sys with rules of their own: `vm.mmap_min_addr`, which wants a capability of who writes it, `kernel.tainted`,
//! which gives no bit back, and `vm.nr_hugepages`, which takes any number and has none to give.
//!
//! Owns the bits of `kernel.tainted`. Never keeps a number of huge pages. Locks: none.
#![forbid(unsafe_code)]

use super::number;
use super::numbers::Wide;
use crate::fs::procfs::file::ProcFile;
use crate::fs::procfs::fixed::register_numbers;
use crate::fs::procfs::is_capable;
use crate::mm::MMAP_MIN_ADDR;
use crate::mm::fallible::try_arc;
use crate::try_format;
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

pub(super) fn register() -> Result<()> {
    let lowest = LowestAddress(Wide(&MMAP_MIN_ADDR));
    register_numbers("vm/mmap_min_addr", 0o644, try_arc(lowest)?)?;
    register_numbers("kernel/tainted", 0o644, try_arc(Tainted)?)?;
    register_numbers("vm/nr_hugepages", 0o644, try_arc(HugePages)?)
}

struct LowestAddress(Wide);

impl ProcFile for LowestAddress {
    fn read(&self) -> Result<Vec<u8>> {
        self.0.read()
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if is_capable(Capability::SYS_RAWIO) { self.0.write(data) } else { Err(Errno::EPERM) }
    }
}

/// What root says has happened to the kernel. Relaxed: nothing is published through it.
static TAINTED: AtomicU64 = AtomicU64::new(0);
/// The bits that mean something to Linux.
const TAINTS: u64 = (1 << 19) - 1;

struct Tainted;

impl ProcFile for Tainted {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", TAINTED.load(Ordering::Relaxed)).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if !is_capable(Capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        if !data.is_empty() {
            TAINTED.fetch_or(parse(data)? & TAINTS, Ordering::Relaxed);
        }
        Ok(data.len())
    }
}

struct HugePages;

impl ProcFile for HugePages {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("0\n").map(String::into_bytes)
    }

    /// As a Linux answers that finds no huge page free: the number is taken, and the file shows how many there are.
    fn write(&self, data: &[u8]) -> Result<usize> {
        if !data.is_empty() && parse(data)? > 0 {
            log::info!("sysctl: vm/nr_hugepages stays 0, for there are no huge pages");
        }
        Ok(data.len())
    }
}

fn parse(data: &[u8]) -> Result<u64> {
    number::unsigned(data).ok_or(Errno::EINVAL)
}
