//! A TPM's registers and buffers in the kernel's address space.
//!
//! Owns the mapping, which is for ever: a machine has one TPM, looked for once. Never maps memory that the kernel uses. Locks:
//! none.

use core::ptr;

use super::crb::{Buffer, Control};
use super::fifo::{Broken, Registers};
use crate::base::boot_info::{BootInfo, MemoryKind};
use crate::base::kmap::{self, Cache};

/// Registers of a locality, or a buffer: mapped for ever.
#[derive(Clone)]
pub struct Mapped {
    at: u64,
    len: usize,
}

impl Mapped {
    /// What is at `start`.
    pub fn new(info: &BootInfo, start: u64, len: usize) -> Result<Self, Broken> {
        map(info, start, len).map(|at| Self { at, len })
    }

    /// The address of something of `size` bytes in it.
    fn place(&self, offset: usize, size: usize) -> u64 {
        assert!(offset + size <= self.len && offset.is_multiple_of(size));
        self.at + offset as u64
    }
}

impl Registers for Mapped {
    fn byte(&mut self, register: usize) -> u8 {
        self.load(register)
    }

    fn word(&mut self, register: usize) -> u32 {
        self.read(register)
    }

    fn write(&mut self, register: usize, value: u8) {
        self.store(register, value);
    }
}

impl Control for Mapped {
    fn read(&self, register: usize) -> u32 {
        // SAFETY: as in `load`.
        unsafe { ptr::read_volatile(self.place(register, 4) as *const u32) }
    }

    fn write(&mut self, register: usize, value: u32) {
        // SAFETY: as in `load`; nothing that a TPM does touches memory of the kernel's.
        unsafe { ptr::write_volatile(self.place(register, 4) as *mut u32, value) };
    }
}

impl Buffer for Mapped {
    fn len(&self) -> usize {
        self.len
    }

    fn load(&self, at: usize) -> u8 {
        // SAFETY: `map` mapped it for ever, and `place` keeps to it, as it does to the alignment.
        unsafe { ptr::read_volatile(self.place(at, 1) as *const u8) }
    }

    fn store(&mut self, at: usize, byte: u8) {
        // SAFETY: as in `write`.
        unsafe { ptr::write_volatile(self.place(at, 1) as *mut u8, byte) };
    }
}

/// Maps what the TPM or its table names, if none of it is memory that the kernel uses.
fn map(info: &BootInfo, start: u64, len: usize) -> Result<u64, Broken> {
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
