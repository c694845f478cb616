//! Ending: power-off, reboot, QEMU's debug exit.
//!
//! Owns the ways, tried from the most to the least proper. Called with everything stopped that
//! matters; never returns. Locks: none.

use core::arch::asm;

use super::acpi;
use crate::base::cpu;
use crate::base::port::Ports;

/// QEMU's fixed port on pc and q35, then Bochs' and old QEMU's.
// SAFETY: they switch the machine off, which only the functions of this module do.
const POWER: [Ports; 3] =
    unsafe { [Ports::new(0x604, 2), Ports::new(0xb004, 2), Ports::new(0x4004, 2)] };
// SAFETY: as above: it restarts the machine.
const RESET_CONTROL: Ports = unsafe { Ports::new(0xcf9, 1) };
// SAFETY: as above: the keyboard controller, of which only the reset line is used.
const KEYBOARD_COMMAND: Ports = unsafe { Ports::new(0x64, 1) };
// SAFETY: as above: it ends the emulator.
const DEBUG_EXIT: Ports = unsafe { Ports::new(0xf4, 4) };

/// Switches the machine off. One whose tables do not say how is restarted, as QEMU wants it of its microvm: with `-no-reboot`
/// that is its end (QEMU, docs/system/i386/microvm.rst).
pub fn power_off() -> ! {
    cpu::irq_disable();
    acpi::enter_s5();
    for (port, value) in POWER.into_iter().zip([0x2000, 0x2000, 0x3400]) {
        port.write16(0, value);
    }
    if acpi::knows_s5() {
        cpu::halt_forever()
    }
    for _ in 0..1_000_000 {
        cpu::relax();
    }
    triple_fault()
}

/// Restarts the machine.
pub fn reboot() -> ! {
    cpu::irq_disable();
    acpi::reset();
    RESET_CONTROL.write8(0, 0x02);
    RESET_CONTROL.write8(0, 0x06);
    for _ in 0..100_000 {
        if KEYBOARD_COMMAND.read8(0) & 2 == 0 {
            break;
        }
    }
    KEYBOARD_COMMAND.write8(0, 0xfe);
    for _ in 0..100_000 {
        cpu::relax();
    }
    triple_fault()
}

fn triple_fault() -> ! {
    let nothing = [0u16; 5];
    // SAFETY: an empty IDT makes the next trap a triple fault, which is the point.
    unsafe { asm!("lidt [{}]", "int3", in(reg) &raw const nothing, options(noreturn)) }
}

/// Writes to QEMU's isa-debug-exit: the emulator ends with status `code * 2 + 1`. Without the device
/// nothing happens.
pub fn debug_exit(code: u32) {
    DEBUG_EXIT.write32(0, code);
}
