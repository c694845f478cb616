//! A TPM's registers and buffers in the kernel's address space.
//!
//! Owns the mapping, which is for ever: a machine has one TPM, looked for once. Never maps memory that the kernel uses. Locks:
//! none.

use core::ptr;

use super::fifo::{Broken, REGISTERS, Registers};
use crate::base::boot_info::{BootInfo, MemoryKind};
use crate::base::kmap::{self, Cache};

/// Registers of a locality, mapped for ever.
pub struct Mapped(u64);

impl Mapped {
    /// Those at `start`, of a FIFO.
    pub fn new(info: &BootInfo, start: u64) -> Result<Self, Broken> {
        map(info, start, REGISTERS).map(Self)
    }
}

impl Registers for Mapped {
    fn byte(&mut self, register: usize) -> u8 {
        // SAFETY: `map` mapped them for ever, uncached, as far as `REGISTERS`, which no register lies beyond.
        unsafe { ptr::read_volatile((self.0 as *const u8).wrapping_add(register)) }
    }

    fn word(&mut self, register: usize) -> u32 {
        // SAFETY: as in `byte`; registers that are read as words are aligned as such.
        unsafe { ptr::read_volatile((self.0 as *const u32).wrapping_byte_add(register)) }
    }

    fn write(&mut self, register: usize, value: u8) {
        // SAFETY: as in `byte`; nothing that a TPM does touches memory of the kernel's.
        unsafe { ptr::write_volatile((self.0 as *mut u8).wrapping_add(register), value) };
    }
}

/// Maps what the TPM or its table names, if none of it is memory that the kernel uses.
pub fn map(info: &BootInfo, start: u64, len: usize) -> Result<u64, Broken> {
    let end = start.checked_add(len as u64).filter(|&end| end <= 1 << 46).ok_or(Broken)?;
    let is_used = info.memory_map.iter().any(|region| {
        let foreign = matches!(region.kind, MemoryKind::Reserved | MemoryKind::AcpiNvs);
        !foreign && start < region.end() && end > region.start.as_u64()
    });
    if is_used || start == 0 || len == 0 || !start.is_multiple_of(4) {
        return Err(Broken);
    }
    kmap::map(start, len, Cache::Uncached).ok_or(Broken)
}
