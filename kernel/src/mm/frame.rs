//! [`Frame`]: a counted reference to one 4 KiB page of physical memory.

use abi::Result;
use x86_64::PhysAddr;

/// A counted reference to one page frame; cloning adds a reference, dropping the last one frees it.
pub struct Frame {
    phys: PhysAddr,
}

impl Frame {
    /// A frame with undefined contents; `ENOMEM` while only the kernel's reserve is left.
    pub fn alloc() -> Result<Self> {
        todo!()
    }

    /// A frame of zeros; `ENOMEM` while only the kernel's reserve is left.
    pub fn alloc_zeroed() -> Result<Self> {
        todo!()
    }

    /// Its physical address.
    pub fn phys(&self) -> PhysAddr {
        self.phys
    }

    /// How many references exist.
    pub fn refcount(&self) -> u32 {
        todo!()
    }

    /// Copies bytes out from offset `off`; panics unless the range lies within the page.
    pub fn read(&self, _off: usize, _dst: &mut [u8]) {
        todo!()
    }

    /// Copies bytes in at offset `off`; panics unless the range lies within the page.
    pub fn write(&self, _off: usize, _src: &[u8]) {
        todo!()
    }

    /// Zeros `len` bytes from `off`.
    pub fn zero(&self, _off: usize, _len: usize) {
        todo!()
    }

    /// Zeros the whole page.
    pub fn fill_zero(&self) {
        todo!()
    }

    /// Overwrites the whole page with the contents of another.
    pub fn copy_from(&self, _other: &Frame) {
        todo!()
    }
}

impl Clone for Frame {
    fn clone(&self) -> Self {
        todo!()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        todo!()
    }
}
