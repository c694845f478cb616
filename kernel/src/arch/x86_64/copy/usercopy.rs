//! The raw primitives that touch user memory, each with an exception-table entry.
//!
//! Owns every instruction of the kernel that may fault on a user address, but for those of the keystream
//! (`chacha20`), which nobody waits for. They are called only by `mm::user::user` and for the vector state. The primitives bound the
//! address themselves, without a branch: what lies above the user's becomes `USER_END`, where nothing ever is; so they fault there, and
//! a CPU that runs ahead of a check reads nothing of the kernel's either. A range that goes on beyond faults at `USER_END`. They open
//! the SMAP window around their accesses and nothing else. Interrupts may be on. Never called with a
//! spinlock held, but for what cannot wait. Locks: none.
//!
//! Block copies return the number of bytes NOT copied, exact to the byte: a fault in a wide access
//! falls back to bytes from where it happened.

use crate::base::page::USER_END;
use core::arch::{asm, global_asm};

/// A value read from user memory and whether the access faulted, in rax and rdx.
#[repr(C)]
#[derive(Clone, Copy)]
struct Fetched {
    value: u64,
    fault: u64,
}

impl Fetched {
    #[inline]
    fn ok(self) -> Option<u64> {
        (self.fault == 0).then_some(self.value)
    }
}

unsafe extern "C" {
    fn alea_copy_from_user(dst: *mut u8, src: *const u8, len: usize) -> usize;
    fn alea_copy_to_user(dst: *mut u8, src: *const u8, len: usize) -> usize;
    fn alea_clear_user(dst: *mut u8, len: usize) -> usize;
    fn alea_get_user_2(addr: u64) -> Fetched;
    fn alea_get_user_4(addr: u64) -> Fetched;
    fn alea_get_user_8(addr: u64) -> Fetched;
    fn alea_probe_8(addr: u64) -> Fetched;
    fn alea_peek_user_8(addr: u64) -> Fetched;
    fn alea_put_user_2(addr: u64, value: u64) -> u64;
    fn alea_put_user_4(addr: u64, value: u64) -> u64;
    fn alea_put_user_8(addr: u64, value: u64) -> u64;
    fn alea_put_user_16();
    fn alea_cmpxchg_user_4(addr: u64, old: u64, new: u64) -> Fetched;
    fn alea_xchg_user_4(addr: u64, new: u64) -> Fetched;
    fn alea_xadd_user_4(addr: u64, add: u64) -> Fetched;
    fn alea_strncpy_user(dst: *mut u8, src: *const u8, max: usize) -> Fetched;
    fn alea_strnlen_user(src: *const u8, max: usize) -> Fetched;
    fn alea_xsave_user(area: u64, mask: u64, mark: u64, size: usize) -> u64;
    fn alea_xrstor_user(area: u64, mask: u64) -> u64;
}

/// Copies from user memory; returns the bytes not copied.
///
/// # Safety
/// `dst` is valid for `len` bytes of kernel memory.
#[inline]
pub unsafe fn copy_from_user(dst: *mut u8, src: u64, len: usize) -> usize {
    // SAFETY: passed on; a fault on `src` ends in the exception table.
    unsafe { alea_copy_from_user(dst, src as *const u8, len) }
}

/// Copies to user memory; returns the bytes not copied.
///
/// # Safety
/// `src` is valid for `len` bytes of kernel memory.
#[inline]
pub unsafe fn copy_to_user(dst: u64, src: *const u8, len: usize) -> usize {
    // SAFETY: passed on; a fault on `dst` ends in the exception table.
    unsafe { alea_copy_to_user(dst as *mut u8, src, len) }
}

/// Zeroes user memory; returns the bytes not cleared.
///
/// # Safety
/// What it overwrites is the user's own matter: memory below `USER_END` is nothing that the kernel relies on.
#[inline]
pub unsafe fn clear_user(dst: u64, len: usize) -> usize {
    // SAFETY: passed on.
    unsafe { alea_clear_user(dst as *mut u8, len) }
}

macro_rules! accessors {
    ($($get:ident $put:ident $type:ty, $raw_get:ident $raw_put:ident;)+) => {$(
        /// Reads one user value; `None` on a fault.
        ///
        /// # Safety
        /// None for what the kernel has: an address that is not the user's becomes one that faults.
        #[inline]
        pub unsafe fn $get(addr: u64) -> Option<$type> {
            // SAFETY: passed on.
            unsafe { $raw_get(addr) }.ok().map(|value| value as $type)
        }

        /// Writes one user value; false on a fault.
        ///
        /// # Safety
        /// None for what the kernel has: an address that is not the user's becomes one that faults.
        #[inline]
        pub unsafe fn $put(addr: u64, value: $type) -> bool {
            // SAFETY: passed on.
            unsafe { $raw_put(addr, u64::from(value)) == 0 }
        }
    )+};
}

accessors! {
    get_u16 put_u16 u16, alea_get_user_2 alea_put_user_2;
    get_u32 put_u32 u32, alea_get_user_4 alea_put_user_4;
    get_u64 put_u64 u64, alea_get_user_8 alea_put_user_8;
}

/// Writes two user words; false on a fault, and then the second may be written.
///
/// # Safety
/// As `put_u64`.
#[inline]
pub unsafe fn put_pair(addr: u64, [low, high]: [u64; 2]) -> bool {
    let fault: u64;
    // SAFETY: passed on. The routine changes rax, rdx and the flags only, which saves its caller, on the
    // shortest system calls, the registers that a call in C would cost.
    unsafe {
        asm!(
            "call {put}",
            put = sym alea_put_user_16,
            in("rdi") addr,
            in("rsi") low,
            inlateout("rdx") high => _,
            lateout("rax") fault,
        );
    }
    fault == 0
}

/// Saves the extended state in the standard format of XSAVE, with what marks it as a signal frame's: `mark` and
/// `mask` at its software bytes, the second magic number behind `size` bytes. False on a fault.
///
/// # Safety
/// The CPU has XSAVE with the states of `mask`; `area` is a multiple of 64, and `area..area + size + 4` is below
/// the user limit.
#[inline]
pub unsafe fn xsave(area: u64, mask: u64, mark: u64, size: usize) -> bool {
    // SAFETY: passed on.
    unsafe { alea_xsave_user(area, mask, mark, size) == 0 }
}

/// Loads the extended state from user memory; false if it is not there or not valid, and then some of the
/// registers may be loaded.
///
/// # Safety
/// The CPU has XSAVE with the states of `mask`; the area is below the user limit; the registers hold the state of
/// the running task, and change for it.
#[inline]
pub unsafe fn xrstor(area: u64, mask: u64) -> bool {
    // SAFETY: passed on; the CPU checks the image itself.
    unsafe { alea_xrstor_user(area, mask) == 0 }
}

/// Reads a word of kernel memory that may not be mapped, for backtraces.
pub fn probe_kernel(addr: u64) -> Option<u64> {
    if addr < 1 << 63 || !addr.is_multiple_of(8) {
        return None;
    }
    // SAFETY: a fault ends in the exception table (`trap::page_fault` knows this instruction);
    // memory in the kernel half has no side effects on reads except device registers, which lie
    // in the MMIO area that no stack pointer leads to.
    unsafe { alea_probe_8(addr) }.ok()
}

/// Reads a user word if it is mapped right now: a fault is never resolved, so it may be read in any context.
///
/// # Safety
/// The address is below the user limit.
pub unsafe fn peek_user(addr: u64) -> Option<u64> {
    // SAFETY: passed on; `trap::page_fault` knows this instruction.
    unsafe { alea_peek_user_8(addr) }.ok()
}

/// Atomically loads an aligned word (futex); sequentially consistent on x86.
///
/// # Safety
/// The address is below the user limit and 4-byte aligned.
#[inline]
pub unsafe fn atomic_load_u32(addr: u64) -> Option<u32> {
    // SAFETY: passed on; an aligned four-byte load is atomic.
    unsafe { get_u32(addr) }
}

/// Atomic compare-and-exchange: the value found (equal to `old` when it was exchanged).
///
/// # Safety
/// The address is below the user limit and 4-byte aligned.
#[inline]
pub unsafe fn atomic_cmpxchg_u32(addr: u64, old: u32, new: u32) -> Option<u32> {
    // SAFETY: passed on.
    unsafe { alea_cmpxchg_user_4(addr, u64::from(old), u64::from(new)) }.ok().map(|v| v as u32)
}

/// Atomic exchange: the value found.
///
/// # Safety
/// The address is below the user limit and 4-byte aligned.
#[inline]
pub unsafe fn atomic_xchg_u32(addr: u64, new: u32) -> Option<u32> {
    // SAFETY: passed on.
    unsafe { alea_xchg_user_4(addr, u64::from(new)) }.ok().map(|v| v as u32)
}

/// Atomic addition: the value found.
///
/// # Safety
/// The address is below the user limit and 4-byte aligned.
#[inline]
pub unsafe fn atomic_add_u32(addr: u64, add: u32) -> Option<u32> {
    // SAFETY: passed on.
    unsafe { alea_xadd_user_4(addr, u64::from(add)) }.ok().map(|v| v as u32)
}

/// Copies a string: the number of bytes copied without the terminator, or `max` when there was no
/// terminator within `max` bytes; `None` on a fault.
///
/// # Safety
/// `dst` is valid for `max` bytes; `src..src+max` is below the user limit. Bytes of `dst` behind
/// the terminator may be overwritten.
#[inline]
pub unsafe fn strncpy_from_user(dst: *mut u8, src: u64, max: usize) -> Option<usize> {
    // SAFETY: passed on.
    unsafe { alea_strncpy_user(dst, src as *const u8, max) }.ok().map(|len| len as usize)
}

/// The length of a string, or `max` when there is no terminator in `max` bytes; `None` on a fault.
///
/// # Safety
/// `src..src+max` is below the user limit.
#[inline]
pub unsafe fn strnlen_user(src: u64, max: usize) -> Option<usize> {
    // SAFETY: passed on.
    unsafe { alea_strnlen_user(src as *const u8, max) }.ok().map(|len| len as usize)
}

global_asm!(
    super::site::site_macros!(),
    include_str!("usercopy.s"),
    super::site::purge_site_macros!(),
    magic2 = const MAGIC2,
    user_end = const USER_END,
);

pub(in crate::arch) const MAGIC2: u32 = 0x4650_5845;
