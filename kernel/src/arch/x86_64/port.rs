//! Port I/O, as safe functions for the drivers: a port access cannot break memory safety by itself
//! on the machines Alea supports (no ISA DMA engine is ever programmed). Owns nothing.

use super::exits::{self, Exit};
use core::arch::asm;

#[inline]
pub fn inb(port: u16) -> u8 {
    exits::count(Exit::Port);
    let value: u8;
    // SAFETY: see the file header.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    };
    value
}

#[inline]
pub fn outb(port: u16, value: u8) {
    exits::count(Exit::Port);
    // SAFETY: see the file header.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    };
}

#[inline]
pub fn inw(port: u16) -> u16 {
    exits::count(Exit::Port);
    let value: u16;
    // SAFETY: see the file header.
    unsafe {
        asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags))
    };
    value
}

#[inline]
pub fn outw(port: u16, value: u16) {
    exits::count(Exit::Port);
    // SAFETY: see the file header.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
    };
}

#[inline]
pub fn inl(port: u16) -> u32 {
    exits::count(Exit::Port);
    let value: u32;
    // SAFETY: see the file header.
    unsafe {
        asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags))
    };
    value
}

#[inline]
pub fn outl(port: u16, value: u32) {
    exits::count(Exit::Port);
    // SAFETY: see the file header.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
    };
}
