//! QEMU's `virt` with a 64-bit Arm CPU: the entry at EL1, and semihosting to print and to end.
//!
//! Owns nothing. Locks: none.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .head, \"ax\", @progbits",
    ".global _start",
    "_start:",
    "ldr x0, =stack_top",
    "mov sp, x0",
    // Compiled code uses vector registers.
    "mov x0, #(3 << 20)",
    "msr cpacr_el1, x0",
    "isb",
    "b {main}",
    ".popsection",
    main = sym main,
);

extern "C" fn main() -> ! {
    exit(crate::run())
}

pub fn now() -> u64 {
    let count;
    // SAFETY: reading the counter touches no memory; EL1 may always.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
    count
}

/// RNDRRS, where the CPU has it.
pub fn hardware() -> Option<u64> {
    let features: u64;
    // SAFETY: reading an identification register touches no memory.
    unsafe { asm!("mrs {}, id_aa64isar0_el1", out(reg) features, options(nomem, nostack)) };
    if features >> 60 == 0 {
        return None;
    }
    let (word, failed): (u64, u64);
    // SAFETY: the CPU has the register; reading it sets the flags and nothing else.
    unsafe {
        asm!("mrs {}, s3_3_c2_c4_1", "cset {}, eq", out(reg) word, out(reg) failed, options(nomem, nostack));
    }
    (failed == 0).then_some(word)
}

pub fn put(byte: u8) {
    const SYS_WRITEC: u32 = 3;
    semihost(SYS_WRITEC, (&raw const byte).cast());
}

pub fn exit(good: bool) -> ! {
    const SYS_EXIT: u32 = 0x18;
    const APPLICATION_EXIT: usize = 0x20026;
    let block = [APPLICATION_EXIT, usize::from(!good)];
    semihost(SYS_EXIT, block.as_ptr().cast());
    loop {
        core::hint::spin_loop();
    }
}

fn semihost(operation: u32, argument: *const ()) {
    // SAFETY: the debugger, here QEMU, reads what `argument` points to, and changes x0.
    unsafe { asm!("hlt #0xf000", inout("w0") operation => _, in("x1") argument, options(nostack)) };
}
