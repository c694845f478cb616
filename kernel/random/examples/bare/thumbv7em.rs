//! QEMU's `mps2-an386`, a Cortex-M4 with a floating-point unit: SysTick for time, semihosting to print and to end.
//!
//! Owns SysTick. Locks: none.

use core::arch::{asm, global_asm};
use core::hint;
use core::sync::atomic::{AtomicU32, Ordering};

global_asm!(
    ".pushsection .head, \"ax\", %progbits",
    // What the CPU reads first: its stack and its first instruction.
    ".word stack_top",
    ".word _start",
    ".global _start",
    ".type _start, %function",
    ".thumb_func",
    "_start:",
    // CPACR: compiled code may use the floating-point unit.
    "ldr r0, =0xe000ed88",
    "mov r1, #(0xf << 20)",
    "str r1, [r0]",
    "dsb",
    "isb",
    "bl {main}",
    ".popsection",
    main = sym main,
);

const SYSTICK_CONTROL: *mut u32 = 0xe000_e010 as *mut u32;
const SYSTICK_RELOAD: *mut u32 = 0xe000_e014 as *mut u32;
const SYSTICK_VALUE: *mut u32 = 0xe000_e018 as *mut u32;
/// It counts down, in 24 bits.
const SYSTICK_MASK: u32 = 0x00ff_ffff;

extern "C" fn main() -> ! {
    // SAFETY: the registers are SysTick's on every CPU of this kind. It counts cycles and interrupts nobody.
    unsafe {
        SYSTICK_RELOAD.write_volatile(SYSTICK_MASK);
        SYSTICK_VALUE.write_volatile(0);
        SYSTICK_CONTROL.write_volatile(0b101);
    }
    exit(crate::run())
}

/// Cycles, in 32 bits: whoever asks again within 2^24 of them sees time go forward.
pub fn now() -> u64 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    static TOTAL: AtomicU32 = AtomicU32::new(0);
    // SAFETY: reading the register changes nothing that anybody looks at.
    let value = unsafe { SYSTICK_VALUE.read_volatile() };
    // Relaxed: there is one CPU, and no handler asks.
    let elapsed = LAST.swap(value, Ordering::Relaxed).wrapping_sub(value) & SYSTICK_MASK;
    u64::from(TOTAL.fetch_add(elapsed, Ordering::Relaxed).wrapping_add(elapsed))
}

pub fn hardware() -> Option<u64> {
    None
}

pub fn put(byte: u8) {
    const SYS_WRITEC: u32 = 3;
    semihost(SYS_WRITEC, (&raw const byte).cast());
}

pub fn exit(good: bool) -> ! {
    const SYS_EXIT_EXTENDED: u32 = 0x20;
    const APPLICATION_EXIT: usize = 0x20026;
    let block = [APPLICATION_EXIT, usize::from(!good)];
    semihost(SYS_EXIT_EXTENDED, block.as_ptr().cast());
    loop {
        hint::spin_loop();
    }
}

fn semihost(operation: u32, argument: *const ()) {
    // SAFETY: the debugger, here QEMU, reads what `argument` points to, and changes r0.
    unsafe { asm!("bkpt 0xab", inout("r0") operation => _, in("r1") argument, options(nostack)) };
}
