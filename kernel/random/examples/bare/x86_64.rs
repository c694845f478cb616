//! QEMU's PC: PVH's entry in 32-bit mode, the way to 64-bit mode, COM1, and QEMU's port to end with.
//!
//! Owns the page tables, which map the first GiB as it is. Locks: none.

use core::arch::{asm, global_asm, x86_64};

global_asm!(
    ".pushsection .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 4, 18", // Xen's note of the 32-bit entry
    ".asciz \"Xen\"",
    ".long _start",
    ".popsection",
    ".pushsection .head, \"ax\", @progbits",
    ".code32",
    ".global _start",
    "_start:",
    "mov esp, offset stack_top",
    // 512 pages of 2 MiB, present and writable.
    "mov edi, offset pages",
    "mov eax, 0x83",
    "2: mov [edi], eax",
    "add edi, 8",
    "add eax, 0x200000",
    "cmp eax, 0x40000083",
    "jne 2b",
    "mov dword ptr [edi], offset pages + 3",
    "mov dword ptr [edi + 4096], offset pages + 4096 + 3",
    "add edi, 4096",
    "mov cr3, edi",
    "mov eax, cr4",
    "or eax, 0x20", // PAE
    "mov cr4, eax",
    "mov ecx, 0xc0000080", // EFER
    "rdmsr",
    "or eax, 0x100", // LME
    "wrmsr",
    "mov eax, cr0",
    "or eax, 0x80000000", // PG
    "mov cr0, eax",
    "lgdt [gdt_pointer]",
    "push 8",
    "mov eax, offset long_mode",
    "push eax",
    "retf",
    ".code64",
    "long_mode:",
    "call {main}",
    "ud2",
    ".balign 8",
    "gdt: .quad 0, 0x00af9a000000ffff",
    "gdt_pointer: .short 15",
    ".long gdt",
    ".popsection",
    ".pushsection .bss.pages, \"aw\", @nobits",
    ".balign 4096",
    "pages: .skip 3 * 4096",
    ".popsection",
    main = sym main,
);

extern "C" fn main() -> ! {
    exit(crate::run())
}

pub fn now() -> u64 {
    // SAFETY: reading the counter touches no memory.
    unsafe { x86_64::_rdtsc() }
}

/// RDSEED, where CPUID has it. Not RDRAND: its eight words may all stem from one seed of 128 bits.
pub fn hardware() -> Option<u64> {
    const RDSEED: u32 = 1 << 18;
    if x86_64::__cpuid(0).eax < 7 || x86_64::__cpuid_count(7, 0).ebx & RDSEED == 0 {
        return None;
    }
    let (word, delivered): (u64, u8);
    // SAFETY: the CPU has the instruction, which touches two registers and the flags.
    unsafe {
        asm!("rdseed {}", "setc {}", out(reg) word, out(reg_byte) delivered, options(nomem, nostack));
    }
    (delivered != 0).then_some(word)
}

/// To COM1, which QEMU never lets wait.
pub fn put(byte: u8) {
    // SAFETY: the port is the serial line's data register.
    unsafe { asm!("out dx, al", in("dx") 0x3f8_u16, in("al") byte, options(nomem, nostack)) };
}

/// By QEMU's `isa-debug-exit`, whose status is 33 for success.
pub fn exit(good: bool) -> ! {
    let status: u32 = if good { 16 } else { 17 };
    // SAFETY: QEMU ends here; elsewhere the port is nobody's, and the CPU stops.
    unsafe {
        asm!("out dx, eax", "2: hlt", "jmp 2b", in("dx") 0xf4_u16, in("eax") status, options(noreturn));
    }
}
