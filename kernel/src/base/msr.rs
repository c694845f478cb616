//! Model-specific registers: numbers and raw access. Owns nothing. Never checks a value: the caller does, which is why
//! both functions are unsafe. Locks: none.

use core::arch::asm;

pub const APIC_BASE: u32 = 0x1b;
pub const SPEC_CTRL: u32 = 0x48;
pub const PRED_CMD: u32 = 0x49;
pub const DEBUGCTL: u32 = 0x1d9;
pub const TSC_DEADLINE: u32 = 0x6e0;
pub const X2APIC_BASE: u32 = 0x800;
pub const EFER: u32 = 0xc000_0080;
pub const STAR: u32 = 0xc000_0081;
pub const LSTAR: u32 = 0xc000_0082;
pub const SFMASK: u32 = 0xc000_0084;
pub const FS_BASE: u32 = 0xc000_0100;
pub const GS_BASE: u32 = 0xc000_0101;
pub const KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Reads an MSR.
///
/// # Safety
/// The MSR must exist on this CPU; an absent one is a general protection fault.
#[inline]
pub unsafe fn read(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller vouches that the register exists.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
            options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes an MSR.
///
/// # Safety
/// The MSR must exist and the value must keep the kernel's invariants (bases, entry points).
#[inline]
pub unsafe fn write(register: u32, value: u64) {
    // SAFETY: the caller vouches for register and value.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
            options(nostack, preserves_flags));
    }
}
