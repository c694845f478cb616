//! Turns the three-byte no-ops at the marked places into CLAC and STAC when the CPU has SMAP.
//!
//! Owns the one moment at which kernel text is written; runs before interrupts exist, and never again.
//! Locks: none.

use core::arch::asm;

use crate::base::cpu;

#[repr(C)]
#[derive(Clone, Copy)]
struct Site {
    address: u64,
    /// 0: close the window (CLAC), 1: open it (STAC).
    kind: u64,
}

unsafe extern "C" {
    static __smap_sites_start: Site;
    static __smap_sites_end: Site;
}

/// Patches all sites.
pub fn patch() {
    if !cpu::features().smap {
        return;
    }
    // SAFETY: the linker puts the symbols around an array of `Site`, each naming three bytes of
    // no-op in kernel text. Write protection is off for just these writes, on the only CPU, with
    // interrupts off; the code is not being executed and is fetched anew after the CR0 write.
    unsafe {
        let cr0: u64;
        asm!("mov {}, cr0", out(reg) cr0, options(nomem, nostack));
        asm!("mov cr0, {}", in(reg) cr0 & !(1 << 16), options(nostack));
        let mut site = &raw const __smap_sites_start;
        while site < &raw const __smap_sites_end {
            let Site { address, kind } = *site;
            let code = [0x0f, 0x01, if kind == 0 { 0xca } else { 0xcb }];
            (address as *mut [u8; 3]).write_volatile(code);
            site = site.add(1);
        }
        asm!("mov cr0, {}", in(reg) cr0, options(nostack));
    }
}
