//! Port I/O: [`Ports`], the ports of one device.
//!
//! Owns nothing. A port is reached only through a range that was made by unsafe code, beside the reason why no
//! access to it breaks memory safety: safe code cannot name a port, so it cannot reprogram PCI or restart the
//! machine. The ranges that drivers above this floor have are the constants below.
//!
//! Never widens a range. Locks: none; two accesses that belong together are the owner's of the range to keep together.

use super::exits::{self, Exit};
use core::arch::asm;

/// Ports in a row that belong to one device.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    first: u16,
    count: u16,
}

/// The serial port COM1.
// SAFETY: the eight registers of a 16550, or nothing: it moves no data but by its FIFO.
pub const COM1: Ports = unsafe { Ports::new(0x3f8, 8) };

/// QEMU's fw_cfg: the selector, and the byte-wise data behind it.
// SAFETY: the registers that make the device read or write memory by itself lie at 0x514 and are not in here.
pub const FW_CFG: Ports = unsafe { Ports::new(0x510, 2) };

impl Ports {
    /// The `count` ports from `first` on.
    ///
    /// # Safety
    /// Whatever is read from and written to them by the code that gets the range leaves the kernel's memory
    /// alone: a device that moves data by itself, configures others or ends the machine's work must be driven
    /// by the room that makes the range, and the range must not leave that room.
    pub const unsafe fn new(first: u16, count: u16) -> Self {
        assert!(count > 0 && first.checked_add(count - 1).is_some(), "no such ports");
        Self { first, count }
    }

    /// The port for an access of `size` bytes.
    #[inline]
    fn port(self, at: u16, size: u16) -> u16 {
        assert!(at < self.count && size <= self.count - at, "a port of somebody else");
        exits::count(Exit::Port);
        self.first + at
    }

    /// Reads a byte at the port `at` places behind the first.
    #[inline]
    pub fn read8(self, at: u16) -> u8 {
        let port = self.port(at, 1);
        let value: u8;
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Writes a byte.
    #[inline]
    pub fn write8(self, at: u16, value: u8) {
        let port = self.port(at, 1);
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
        };
    }

    /// Reads two bytes at the port `at` places behind the first.
    #[inline]
    pub fn read16(self, at: u16) -> u16 {
        let port = self.port(at, 2);
        let value: u16;
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Writes two bytes.
    #[inline]
    pub fn write16(self, at: u16, value: u16) {
        let port = self.port(at, 2);
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
        };
    }

    /// Reads four bytes at the port `at` places behind the first.
    #[inline]
    pub fn read32(self, at: u16) -> u32 {
        let port = self.port(at, 4);
        let value: u32;
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Writes four bytes.
    #[inline]
    pub fn write32(self, at: u16, value: u32) {
        let port = self.port(at, 4);
        // SAFETY: who made the range answers for accesses to it.
        unsafe {
            asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
        };
    }
}
