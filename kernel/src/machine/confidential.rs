//! Whether this is a confidential virtual machine: one whose memory the host cannot read (AMD SEV, Intel TDX).
//!
//! Owns nothing; asks the CPU at each call. Never says no to a machine that says it is one: `alea.confidential=on` only adds. No
//! locks.
//!
//! References: AMD, *Architecture Programmer's Manual*, volume 3, CPUID 8000_001F, and volume 2, section 15.34.10
//! (`SEV_STATUS`); Intel, *TDX module base specification*, CPUID leaf 21H.

use crate::base::{cpu, msr};
use crate::cmdline::{self, words};

/// True where the host is not to be believed.
pub fn is() -> bool {
    cpu::features().hypervisor && (is_sev() || is_tdx())
        || cmdline::switch(words::CONFIDENTIAL).unwrap_or(false)
}

fn is_sev() -> bool {
    const LEAF: u32 = 0x8000_001f;
    const SEV: u32 = 1 << 1;
    const STATUS: u32 = 0xc001_0131;
    const ENABLED: u64 = 1;
    // SAFETY: a CPU with SEV has the register. The leaf says what the CPU can, the register what this machine is.
    cpu::cpuid(LEAF, 0)[0] & SEV != 0 && unsafe { msr::read(STATUS) } & ENABLED != 0
}

fn is_tdx() -> bool {
    const LEAF: u32 = 0x21;
    // "IntelTDX    " in ebx, edx, ecx.
    cpu::cpuid(LEAF, 0)[1..] == [0x6574_6e49, 0x2020_2020, 0x5844_546c]
}
