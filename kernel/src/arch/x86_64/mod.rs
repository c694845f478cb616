//! x86_64: the list of the modules, and one assembler macro that two of them share.

/// An assembler macro: a three-byte no-op that boot turns into CLAC (kind 0) or STAC (kind 1) when
/// the CPU has SMAP.
macro_rules! smap_site_macro {
    () => {
        concat!(
            ".macro SMAP_SITE kind\n",
            "777: .byte 0x0f, 0x1f, 0x00\n",
            ".pushsection .smap_sites, \"a\"\n",
            ".quad 777b\n",
            ".quad \\kind\n",
            ".popsection\n",
            ".endm",
        )
    };
}
use smap_site_macro;

pub mod acpi;
pub mod apic;
pub mod backtrace;
pub mod boot;
pub mod calibrate;
pub mod chacha20;
pub mod console;
pub mod cpu;
pub mod crash;
pub mod current;
pub mod exits;
pub mod extable;
pub mod fpu;
pub mod gdt;
pub mod identity;
pub mod idt;
mod ioapic;
pub mod irq;
pub mod kmap;
mod mem;
pub mod msr;
pub mod nic;
pub mod page;
pub mod pci;
pub mod percpu;
pub mod port;
pub mod power;
pub mod rtc;
pub mod selftest;
pub mod smbios;
pub mod smp;
pub mod stop;
pub mod switch;
pub mod syscall;
pub mod task;
pub mod trap;
pub mod tsc;
pub mod tsc_check;
pub mod usercopy;
pub mod vm_id;
