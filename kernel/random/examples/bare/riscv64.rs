//! QEMU's `virt` with a RISC-V CPU, in machine mode without firmware: a 16550 to print, the test device to end.
//!
//! Owns nothing. It asks for no entropy source of the CPU (Zkr): finding out whether there is one takes a trap handler.
//! Locks: none.

use core::arch::{asm, global_asm};
use core::hint;

global_asm!(
    ".pushsection .head, \"ax\", @progbits",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "j {main}",
    ".popsection",
    main = sym main,
);

extern "C" fn main() -> ! {
    exit(crate::run())
}

pub fn now() -> u64 {
    let count;
    // SAFETY: reading the counter touches no memory; machine mode may always.
    unsafe { asm!("csrr {}, mcycle", out(reg) count, options(nomem, nostack)) };
    count
}

pub fn hardware() -> Option<u64> {
    None
}

pub fn put(byte: u8) {
    let uart = 0x1000_0000 as *mut u8;
    // SAFETY: the address is the serial line's data register, on this machine.
    unsafe { uart.write_volatile(byte) };
}

pub fn exit(good: bool) -> ! {
    let test = 0x10_0000 as *mut u32;
    // SAFETY: the address is that of the device that ends QEMU: with status 0, or with the upper half.
    unsafe { test.write_volatile(if good { 0x5555 } else { 0x1_3333 }) };
    loop {
        hint::spin_loop();
    }
}
