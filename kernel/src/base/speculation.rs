//! What this CPU says of its flaws of speculative execution, and what the kernel does against them.
//!
//! Owns nothing: reads CPUID and two registers when asked. Never decides: `alea-speculation` does, from these facts. Locks: none.

use super::{cpu, msr, percpu};
use alea_speculation::{Done, Facts};
use core::arch::asm;

/// `index` if it is below `len`, else 0: also where a CPU runs ahead past a comparison that would have refused it. For a table that a
/// program indexes, after the check that it answers by.
#[inline]
pub fn clamp(index: usize, len: usize) -> usize {
    let mask: usize;
    // No branch and no `cmov`, which a later compiler may make one of: all ones from the borrow of index - len, else zero.
    // SAFETY: arithmetic in registers.
    unsafe {
        asm!("cmp {index}, {len}", "sbb {mask}, {mask}", index = in(reg) index, len = in(reg) len,
            mask = lateout(reg) mask, options(pure, nomem, nostack));
    }
    index & mask
}

/// The facts of the calling CPU; all are taken to be alike.
pub fn facts() -> Facts {
    const CAPABILITIES: u32 = 0x10a;
    const MICROCODE_OPTIONS: u32 = 0x123;
    let [_, vendor @ ..] = cpu::cpuid(0, 0);
    let [signature, _, leaf_1_ecx, _] = cpu::cpuid(1, 0);
    let [parts, leaf_7_ebx, _, leaf_7_edx] = cpu::cpuid(7, 0);
    let leaf_7_2_edx = if parts >= 2 { cpu::cpuid(7, 2)[3] } else { 0 };
    let [_, leaf_8000_0008_ebx, ..] = cpu::cpuid(0x8000_0008, 0);
    let [leaf_8000_0021_eax, _, leaf_8000_0021_ecx, _] = cpu::cpuid(0x8000_0021, 0);
    let threads_of_core = cpu::cpuid(0xb, 0)[1] & 0xffff;
    let mut facts = Facts {
        vendor,
        signature,
        leaf_1_ecx,
        leaf_7_ebx,
        leaf_7_edx,
        leaf_7_2_edx,
        leaf_8000_0008_ebx,
        leaf_8000_0021_eax,
        leaf_8000_0021_ecx,
        siblings: threads_of_core > 1 && percpu::cpus_online() > 1,
        ..Facts::default()
    };
    if facts.has_capabilities() {
        // SAFETY: CPUID announces the register.
        facts.capabilities = unsafe { msr::read(CAPABILITIES) };
    }
    if facts.has_microcode_options() {
        // SAFETY: CPUID or the register above announces it.
        facts.microcode_options = unsafe { msr::read(MICROCODE_OPTIONS) };
    }
    facts
}

/// What is done against the flaws.
pub fn done() -> Done {
    Done {}
}
