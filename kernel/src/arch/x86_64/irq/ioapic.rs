//! I/O APICs and the old PICs: which line becomes which vector.
//!
//! Owns the redirection tables. Lines are named by their ISA number (below 16, with the firmware's
//! overrides applied) or by their global number. The PICs are moved out of the way and masked.
//! Never names a vector without a stub. Locks: `TABLE` (level Leaf) while a redirection entry is written.

use super::vectors;
use arrayvec::ArrayVec;

use super::apic;
use crate::base::kmap::{self, Cache};
use crate::base::port::Ports;
use crate::machine::acpi::{self, Override};
use crate::sync::{SpinLock, level};

struct IoApic {
    registers: u64,
    gsi_base: u32,
    lines: u32,
}

static TABLE: SpinLock<ArrayVec<IoApic, 8>, level::Leaf> = SpinLock::new(ArrayVec::new_const());

impl IoApic {
    fn read(&self, register: u32) -> u32 {
        // SAFETY: the register window was mapped by `init`; select, then data.
        unsafe {
            (self.registers as *mut u32).write_volatile(register);
            ((self.registers + 0x10) as *const u32).read_volatile()
        }
    }

    fn write(&self, register: u32, value: u32) {
        // SAFETY: as in `read`; entries only name vectors that have stubs.
        unsafe {
            (self.registers as *mut u32).write_volatile(register);
            ((self.registers + 0x10) as *mut u32).write_volatile(value);
        }
    }
}

/// Masks the PICs and every line of every I/O APIC.
pub(super) fn init() {
    mask_pics();
    let mut table = TABLE.lock();
    let listed = acpi::get().map(|acpi| &acpi.io_apics[..]).unwrap_or_default();
    let usual = [acpi::IoApicEntry { address: 0xfec0_0000, gsi_base: 0 }];
    for entry in if listed.is_empty() { &usual } else { listed } {
        let Some(registers) = kmap::map(u64::from(entry.address), 0x20, Cache::Uncached) else {
            continue;
        };
        let mut io_apic = IoApic { registers, gsi_base: entry.gsi_base, lines: 0 };
        let version = io_apic.read(1);
        if version == u32::MAX {
            continue;
        }
        io_apic.lines = (version >> 16 & 0xff) + 1;
        for line in 0..io_apic.lines {
            io_apic.write(0x10 + line * 2, 1 << 16);
        }
        let _ = table.try_push(io_apic);
    }
}

fn mask_pics() {
    // SAFETY: the two interrupt controllers, which are only masked; nothing else here uses them.
    let [first, second] = unsafe { [Ports::new(0x20, 2), Ports::new(0xa0, 2)] };
    // Vectors 0x20 to 0x2f, where a spurious one does no harm; then everything masked.
    for (register, values) in
        [(0, [0x11, 0x11]), (1, [0x20, 0x28]), (1, [4, 2]), (1, [1, 1]), (1, [0xff, 0xff])]
    {
        first.write8(register, values[0]);
        second.write8(register, values[1]);
    }
}

/// Where an ISA line arrives.
fn wiring(line: u32) -> Override {
    let listed = acpi::get().map(|acpi| &acpi.overrides[..]).unwrap_or_default();
    if let Some(entry) = listed.iter().find(|entry| u32::from(entry.irq) == line) {
        return *entry;
    }
    // Without tables the timer is wired as on every PC; PCI lines are level-triggered, active low.
    let gsi = if line == 0 { 2 } else { line };
    Override { irq: line as u8, gsi, active_low: line >= 16, level: line >= 16 }
}

/// Routes a line to the calling CPU and unmasks it; false when no I/O APIC has it.
pub(super) fn enable(line: u32, vector: u8) -> bool {
    let wiring = wiring(line);
    let table = TABLE.lock();
    let Some(io_apic) = table
        .iter()
        .find(|io_apic| (io_apic.gsi_base..io_apic.gsi_base + io_apic.lines).contains(&wiring.gsi))
    else {
        return false;
    };
    let pin = wiring.gsi - io_apic.gsi_base;
    io_apic.write(0x11 + pin * 2, apic::id() << 24);
    let flags = u32::from(wiring.active_low) << 13 | u32::from(wiring.level) << 15;
    io_apic.write(0x10 + pin * 2, u32::from(vector) | flags);
    debug_assert!(vector >= vectors::FIRST_LINE_VECTOR);
    true
}
