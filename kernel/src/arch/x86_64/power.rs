//! Ending: power-off, reboot, QEMU's debug exit.
//!
//! Owns the ways, tried from the most to the least proper. Called with everything stopped that
//! matters; never returns.

use core::arch::asm;

use super::port::{inb, outb, outl, outw};
use super::{acpi, cpu};

/// Switches the machine off.
pub fn power_off() -> ! {
    cpu::irq_disable();
    acpi::enter_s5();
    // QEMU's fixed port on pc and q35, then Bochs' and old QEMU's.
    outw(0x604, 0x2000);
    outw(0xb004, 0x2000);
    outw(0x4004, 0x3400);
    cpu::halt_forever()
}

/// Restarts the machine.
pub fn reboot() -> ! {
    cpu::irq_disable();
    acpi::reset();
    outb(0xcf9, 0x02);
    outb(0xcf9, 0x06);
    for _ in 0..100_000 {
        if inb(0x64) & 2 == 0 {
            break;
        }
    }
    outb(0x64, 0xfe);
    for _ in 0..100_000 {
        cpu::relax();
    }
    let nothing = [0u16; 5];
    // SAFETY: an empty IDT makes the next trap a triple fault, which is the point.
    unsafe { asm!("lidt [{}]", "int3", in(reg) &raw const nothing, options(noreturn)) }
}

/// Writes to QEMU's isa-debug-exit: the emulator ends with status `code * 2 + 1`. Without the device
/// nothing happens.
pub fn debug_exit(code: u32) {
    outl(0xf4, code);
}
