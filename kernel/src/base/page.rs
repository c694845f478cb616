//! Page-table facts and operations: entry flags, TLB and CR3 instructions, whole-page copies.
//!
//! Owns no table. `mm` builds user page tables with these; `boot::tables` built the kernel's.
//!
//! Never flushes another CPU's TLB: `mm::space` does that through `table::shootdown`. Locks: none.

use core::arch::asm;

use bitflags::bitflags;
use x86_64::PhysAddr;

use super::cpu;

pub const PAGE_SIZE: usize = 4096;
/// The first address that no program has, and the end of what it may use of what lies below.
pub const USER_HALF: u64 = 1 << 47;
pub const USER_END: u64 = USER_HALF - PAGE_SIZE as u64;

pub const LARGE_PAGE_SIZE: usize = 2 << 20;

bitflags! {
    /// Bits of a page-table entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PteFlags: u64 {
        const PRESENT = 1 << 0;
        const WRITABLE = 1 << 1;
        const USER = 1 << 2;
        const WRITE_THROUGH = 1 << 3;
        const NO_CACHE = 1 << 4;
        const ACCESSED = 1 << 5;
        const DIRTY = 1 << 6;
        const LARGE = 1 << 7;
        const GLOBAL = 1 << 8;
        /// Free for software.
        const SOFT_0 = 1 << 9;
        const SOFT_1 = 1 << 10;
        const SOFT_2 = 1 << 11;
        const NO_EXECUTE = 1 << 63;
    }
}

/// The address bits of a page-table entry.
pub const PTE_ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// `NO_EXECUTE` when the CPU has it, else nothing.
#[inline]
pub fn nx() -> PteFlags {
    if cpu::features().nx { PteFlags::NO_EXECUTE } else { PteFlags::empty() }
}

/// Memory that is given out lies below: so a bit of an entry's address from here on means that it points to none.
pub const FRAMES_END: u64 = 1 << 43;
/// What an entry that maps nothing, but holds an address or a number, has besides: with all of these bits its address is one where
/// there is no memory, also for a CPU that looks it up in its first cache before it looks at `PRESENT` (L1TF), and also if that
/// goes by no more than 44 bits.
pub const NOWHERE: u64 = PTE_ADDRESS & !(FRAMES_END - 1);

/// The active top-level table.
#[inline]
pub fn read_cr3() -> PhysAddr {
    let cr3: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) cr3, options(nomem, nostack, preserves_flags)) };
    PhysAddr::new_truncate(cr3 & PTE_ADDRESS)
}

/// Activates a top-level table; this CPU forgets all translations that are not global.
///
/// # Safety
/// The table maps the kernel like every other one and stays allocated while it is active.
#[inline]
pub unsafe fn write_cr3(table: PhysAddr) {
    // SAFETY: the caller vouches for the table.
    unsafe { asm!("mov cr3, {}", in(reg) table.as_u64(), options(nostack, preserves_flags)) };
}

/// Drops one page's translation from this CPU's TLB.
#[inline]
pub fn invlpg(addr: u64) {
    // SAFETY: flushing a translation is always allowed.
    unsafe { asm!("invlpg [{}]", in(reg) addr, options(nostack, preserves_flags)) };
}

/// Drops all translations of the current address space that are not global.
#[inline]
pub fn flush_tlb() {
    // SAFETY: reloads the active table.
    unsafe {
        asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack, preserves_flags));
    }
}

/// Drops all translations, global ones included.
pub fn flush_tlb_all() {
    // SAFETY: toggling CR4.PGE, whatever it was, is the architectural full flush; interrupts are off in between.
    cpu::without_interrupts(|| unsafe {
        let cr4: u64;
        asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4 ^ (1 << 7), options(nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4, options(nostack, preserves_flags));
    });
}

/// Copies one 4 KiB page.
///
/// # Safety
/// Both pointers are valid for a page, aligned to 8 bytes, and the pages do not overlap.
#[inline]
pub unsafe fn copy_page(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller vouches for both pages; DF is clear in the kernel.
    unsafe {
        if cpu::fast_strings() {
            asm!("rep movsb", inout("rcx") PAGE_SIZE => _, inout("rdi") dst => _,
                inout("rsi") src => _, options(nostack, preserves_flags));
        } else {
            asm!("rep movsq", inout("rcx") PAGE_SIZE / 8 => _, inout("rdi") dst => _,
                inout("rsi") src => _, options(nostack, preserves_flags));
        }
    }
}

/// Zeroes one 4 KiB page.
///
/// # Safety
/// The pointer is valid for a page and aligned to 8 bytes.
#[inline]
pub unsafe fn clear_page(dst: *mut u8) {
    // SAFETY: as in `copy_page`.
    unsafe {
        if cpu::fast_strings() {
            asm!("rep stosb", inout("rcx") PAGE_SIZE => _, inout("rdi") dst => _, in("al") 0u8,
                options(nostack, preserves_flags));
        } else {
            asm!("rep stosq", inout("rcx") PAGE_SIZE / 8 => _, inout("rdi") dst => _, in("rax") 0u64,
                options(nostack, preserves_flags));
        }
    }
}
