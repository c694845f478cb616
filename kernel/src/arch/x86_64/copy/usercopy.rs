//! The raw primitives that touch user memory, each with an exception-table entry.
//!
//! Owns every instruction of the kernel that may fault on a user address, but for those of the keystream
//! (`chacha20`), which nobody waits for. Callers (only `mm::user::user`)
//! have checked that the range lies below `base::page::USER_END`; the primitives open the SMAP
//! window around their accesses and nothing else. Interrupts may be on. Never called with a
//! spinlock held, but for what cannot wait. Locks: none.
//!
//! Block copies return the number of bytes NOT copied, exact to the byte: a fault in a wide access
//! falls back to bytes from where it happened.

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
    fn alea_copy_user(dst: *mut u8, src: *const u8, len: usize) -> usize;
    fn alea_clear_user(dst: *mut u8, len: usize) -> usize;
    fn alea_get_user_2(addr: u64) -> Fetched;
    fn alea_get_user_4(addr: u64) -> Fetched;
    fn alea_get_user_8(addr: u64) -> Fetched;
    fn alea_probe_8(addr: u64) -> Fetched;
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
/// `dst` is valid for `len` bytes of kernel memory; `src..src+len` is below the user limit.
#[inline]
pub unsafe fn copy_from_user(dst: *mut u8, src: u64, len: usize) -> usize {
    // SAFETY: passed on; a fault on `src` ends in the exception table.
    unsafe { alea_copy_user(dst, src as *const u8, len) }
}

/// Copies to user memory; returns the bytes not copied.
///
/// # Safety
/// `src` is valid for `len` bytes of kernel memory; `dst..dst+len` is below the user limit.
#[inline]
pub unsafe fn copy_to_user(dst: u64, src: *const u8, len: usize) -> usize {
    // SAFETY: passed on; a fault on `dst` ends in the exception table.
    unsafe { alea_copy_user(dst as *mut u8, src, len) }
}

/// Zeroes user memory; returns the bytes not cleared.
///
/// # Safety
/// `dst..dst+len` is below the user limit.
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
        /// The address is below the user limit.
        #[inline]
        pub unsafe fn $get(addr: u64) -> Option<$type> {
            // SAFETY: passed on.
            unsafe { $raw_get(addr) }.ok().map(|value| value as $type)
        }

        /// Writes one user value; false on a fault.
        ///
        /// # Safety
        /// The address is below the user limit.
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

/// Writes two user words; false on a fault, and then the first may be written.
///
/// # Safety
/// `addr..addr + 16` is below the user limit.
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

// Conventions: rdi, rsi, rdx arguments as in C; no stack use; one fixup per kind of failure.
global_asm!(
    super::smap_site::smap_site_macro!(),
    ".section .usercopy.text, \"ax\"",
    // Records that the next instruction may fault.
    ".macro MAY_FAULT fixup",
    "778:",
    ".pushsection .ex_table, \"a\"",
    ".quad 778b, \\fixup",
    ".popsection",
    ".endm",
    // --- rax = alea_copy_user(rdi dst, rsi src, rdx len) ---
    ".balign 64",
    ".global alea_copy_user",
    "alea_copy_user:",
    "mov rcx, rdx",
    "SMAP_SITE 1",
    "cmp rcx, 64",
    "jae 5f",
    "cmp ecx, 8",
    "jb 3f",
    "2:",
    "MAY_FAULT alea_copy_bytes",
    "mov rax, [rsi]",
    "MAY_FAULT alea_copy_bytes",
    "mov [rdi], rax",
    "add rsi, 8",
    "add rdi, 8",
    "sub ecx, 8",
    "cmp ecx, 8",
    "jae 2b",
    "3:",
    "test ecx, ecx",
    "jz 9f",
    "cmp ecx, 4",
    "jb 4f",
    // 4..7: two overlapping words.
    "MAY_FAULT alea_copy_bytes",
    "mov eax, [rsi]",
    "MAY_FAULT alea_copy_bytes",
    "mov edx, [rsi + rcx - 4]",
    "MAY_FAULT alea_copy_bytes",
    "mov [rdi], eax",
    "MAY_FAULT alea_copy_bytes",
    "mov [rdi + rcx - 4], edx",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    "4:",
    "MAY_FAULT alea_copy_bytes",
    "movzx eax, byte ptr [rsi]",
    "MAY_FAULT alea_copy_bytes",
    "mov [rdi], al",
    "inc rsi",
    "inc rdi",
    "dec ecx",
    "jnz 4b",
    "9:",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    "5:",
    "cmp byte ptr [rip + ALEA_USE_ERMS], 0",
    "jne alea_copy_bytes",
    "shr rcx, 3",
    "and edx, 7",
    "MAY_FAULT alea_copy_words_fixup",
    "rep movsq",
    "mov ecx, edx",
    "test ecx, ecx",
    "jnz 4b",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    "alea_copy_words_fixup:",
    "lea rcx, [rdx + rcx * 8]",
    "alea_copy_bytes:",
    "MAY_FAULT alea_copy_done",
    "rep movsb",
    "alea_copy_done:",
    "mov rax, rcx",
    "SMAP_SITE 0",
    "ret",
    // --- rax = alea_clear_user(rdi dst, rsi len) ---
    ".balign 64",
    ".global alea_clear_user",
    "alea_clear_user:",
    "mov rcx, rsi",
    "xor eax, eax",
    "SMAP_SITE 1",
    "cmp rcx, 64",
    "jae 5f",
    "cmp ecx, 8",
    "jb 3f",
    "2:",
    "MAY_FAULT alea_clear_bytes",
    "mov [rdi], rax",
    "add rdi, 8",
    "sub ecx, 8",
    "cmp ecx, 8",
    "jae 2b",
    "3:",
    "test ecx, ecx",
    "jz 9f",
    "4:",
    "MAY_FAULT alea_clear_bytes",
    "mov [rdi], al",
    "inc rdi",
    "dec ecx",
    "jnz 4b",
    "9:",
    "SMAP_SITE 0",
    "ret",
    "5:",
    "cmp byte ptr [rip + ALEA_USE_ERMS], 0",
    "jne alea_clear_bytes",
    "mov edx, ecx",
    "shr rcx, 3",
    "and edx, 7",
    "MAY_FAULT alea_clear_words_fixup",
    "rep stosq",
    "mov ecx, edx",
    "test ecx, ecx",
    "jnz 4b",
    "SMAP_SITE 0",
    "ret",
    "alea_clear_words_fixup:",
    "lea rcx, [rdx + rcx * 8]",
    "alea_clear_bytes:",
    "xor eax, eax",
    "MAY_FAULT alea_clear_done",
    "rep stosb",
    "alea_clear_done:",
    "mov rax, rcx",
    "SMAP_SITE 0",
    "ret",
    // --- single values ---
    ".macro GET_USER name, load:vararg",
    ".balign 16",
    ".global \\name",
    "\\name:",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "\\load",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    ".endm",
    "GET_USER alea_get_user_2, movzx eax, word ptr [rdi]",
    "GET_USER alea_get_user_4, mov eax, [rdi]",
    "GET_USER alea_get_user_8, mov rax, [rdi]",
    ".balign 16",
    ".global alea_probe_8", // reads any address, a kernel one too; for backtraces
    "alea_probe_8:",
    "MAY_FAULT alea_value_fault",
    ".global alea_probe_load",
    "alea_probe_load:",
    "mov rax, [rdi]",
    "xor edx, edx",
    "ret",
    ".macro PUT_USER name, store:vararg",
    ".balign 16",
    ".global \\name",
    "\\name:",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "\\store",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    ".endm",
    "PUT_USER alea_put_user_2, mov [rdi], si",
    "PUT_USER alea_put_user_4, mov [rdi], esi",
    "PUT_USER alea_put_user_8, mov [rdi], rsi",
    ".balign 16",
    ".global alea_put_user_16",
    "alea_put_user_16:",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "mov [rdi], rsi",
    "MAY_FAULT alea_value_fault",
    "mov [rdi + 8], rdx",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    // --- atomics: rax = value found, rdx = fault ---
    ".balign 16",
    ".global alea_cmpxchg_user_4",
    "alea_cmpxchg_user_4:",
    "mov eax, esi",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "lock cmpxchg [rdi], edx",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    ".balign 16",
    ".global alea_xchg_user_4",
    "alea_xchg_user_4:",
    "mov eax, esi",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "xchg [rdi], eax",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    ".balign 16",
    ".global alea_xadd_user_4",
    "alea_xadd_user_4:",
    "mov eax, esi",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "lock xadd [rdi], eax",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    "alea_value_fault:",
    "mov eax, 1",
    "mov edx, eax",
    "SMAP_SITE 0",
    "ret",
    // --- rax = alea_xsave_user(rdi area, rsi mask, rdx mark, rcx size) ---
    ".macro PUT_FRAME store:vararg",
    "MAY_FAULT alea_value_fault",
    "\\store",
    ".endm",
    ".balign 16",
    ".global alea_xsave_user",
    "alea_xsave_user:",
    "mov r8, rdx",
    "xor eax, eax",
    "SMAP_SITE 1",
    // The CPU leaves all of the header alone but the bits of `mask` in its first word.
    "PUT_FRAME mov [rdi + 512], rax",
    "PUT_FRAME mov [rdi + 520], rax",
    "PUT_FRAME mov [rdi + 528], rax",
    "PUT_FRAME mov [rdi + 536], rax",
    "PUT_FRAME mov [rdi + 544], rax",
    "PUT_FRAME mov [rdi + 552], rax",
    "PUT_FRAME mov [rdi + 560], rax",
    "PUT_FRAME mov [rdi + 568], rax",
    // And the software bytes.
    "PUT_FRAME mov [rdi + 464], r8",
    "PUT_FRAME mov [rdi + 472], rsi",
    "PUT_FRAME mov [rdi + 480], rcx",
    "PUT_FRAME mov [rdi + 488], rax",
    "PUT_FRAME mov [rdi + 496], rax",
    "PUT_FRAME mov [rdi + 504], rax",
    "PUT_FRAME mov dword ptr [rdi + rcx], {magic2}",
    "mov eax, esi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "PUT_FRAME xsave64 [rdi]",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    // --- rax = alea_xrstor_user(rdi area, rsi mask) ---
    ".balign 16",
    ".global alea_xrstor_user",
    "alea_xrstor_user:",
    "mov eax, esi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "SMAP_SITE 1",
    "MAY_FAULT alea_value_fault",
    "xrstor64 [rdi]",
    "xor eax, eax",
    "SMAP_SITE 0",
    "ret",
    ".purgem PUT_FRAME",
    // --- strings: eight bytes at a time, bytes at the end or when a word faults ---
    ".macro FIND_ZERO",
    // In: rax the word, r9 0x0101.., r10 0x8080..; out: rdx nonzero at the zero bytes, flags set.
    "mov rdx, rax",
    "sub rdx, r9",
    "not rax",
    "and rdx, rax",
    "and rdx, r10",
    ".endm",
    ".balign 64",
    ".global alea_strncpy_user",
    "alea_strncpy_user:",
    "mov rcx, rdx",
    "mov r8, rdx",
    "movabs r9, 0x0101010101010101",
    "movabs r10, 0x8080808080808080",
    "SMAP_SITE 1",
    "cmp rcx, 8",
    "jb 3f",
    "2:",
    "MAY_FAULT alea_strncpy_bytes",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    "FIND_ZERO",
    "jnz 6f",
    "add rsi, 8",
    "add rdi, 8",
    "sub rcx, 8",
    "cmp rcx, 8",
    "jae 2b",
    "3:",
    "alea_strncpy_bytes:",
    "test rcx, rcx",
    "jz 5f",
    "4:",
    "MAY_FAULT alea_value_fault",
    "movzx eax, byte ptr [rsi]",
    "mov [rdi], al",
    "test al, al",
    "jz 5f",
    "inc rsi",
    "inc rdi",
    "dec rcx",
    "jnz 4b",
    "5:",
    "mov rax, r8",
    "sub rax, rcx",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    "6:",
    "bsf rdx, rdx",
    "shr edx, 3",
    "mov rax, r8",
    "sub rax, rcx",
    "add rax, rdx",
    "xor edx, edx",
    "SMAP_SITE 0",
    "ret",
    ".balign 64",
    ".global alea_strnlen_user",
    "alea_strnlen_user:",
    "mov rcx, rsi",
    "mov r8, rsi",
    "movabs r9, 0x0101010101010101",
    "movabs r10, 0x8080808080808080",
    "SMAP_SITE 1",
    "cmp rcx, 8",
    "jb 3f",
    "2:",
    "MAY_FAULT alea_strnlen_bytes",
    "mov rax, [rdi]",
    "FIND_ZERO",
    "jnz 6b",
    "add rdi, 8",
    "sub rcx, 8",
    "cmp rcx, 8",
    "jae 2b",
    "3:",
    "alea_strnlen_bytes:",
    "test rcx, rcx",
    "jz 5b",
    "4:",
    "MAY_FAULT alea_value_fault",
    "cmp byte ptr [rdi], 0",
    "je 5b",
    "inc rdi",
    "dec rcx",
    "jnz 4b",
    "jmp 5b",
    // --- one of chacha20.s's routines, r8, on a place in user memory ---
    ".global alea_chacha20_user",
    "alea_chacha20_user:",
    "SMAP_SITE 1",
    "call r8",
    "SMAP_SITE 0",
    "ret",
    ".purgem SMAP_SITE",
    ".purgem MAY_FAULT",
    ".purgem GET_USER",
    ".purgem PUT_USER",
    ".purgem FIND_ZERO",
    magic2 = const MAGIC2,
);

pub(in crate::arch) const MAGIC2: u32 = 0x4650_5845;
