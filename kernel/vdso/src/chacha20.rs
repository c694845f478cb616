//! ChaCha20 keystream for the image: everything in vector registers, nothing on the stack.
//!
//! Owns the two routines around the loops of keystream.s. Where the kernel's wrappers save the caller's
//! registers, these leave zeros in them: in a call all vector registers are the callee's. The words that
//! do not fit into registers wait at the end of the state's own group, which the next group overwrites.

use core::arch::{asm, global_asm};

/// Bytes of a group: eight blocks, whose 32-bit words come out interleaved.
pub const GROUP: usize = 512;

/// Where in the group words may wait: what is written there last.
const SCRATCH: usize = GROUP - 64;

global_asm!(
    include_str!("keystream.s"),
    ".section .text.alea_vdso_chacha20, \"ax\"",
    ".hidden alea_vdso_keystream_sse2",
    ".globl alea_vdso_keystream_sse2",
    ".type alea_vdso_keystream_sse2, @function",
    ".balign 32",
    "alea_vdso_keystream_sse2:",
    ".cfi_startproc",
    "ALEA_KEYSTREAM_SSE2",
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "pxor xmm\\r, xmm\\r",
    ".endr",
    "ret",
    ".cfi_endproc",
    ".size alea_vdso_keystream_sse2, . - alea_vdso_keystream_sse2",
    ".hidden alea_vdso_keystream_avx2",
    ".globl alea_vdso_keystream_avx2",
    ".type alea_vdso_keystream_avx2, @function",
    ".balign 32",
    "alea_vdso_keystream_avx2:",
    ".cfi_startproc",
    "ALEA_KEYSTREAM_AVX2 ALEA_SHIFT_AVX2",
    // Wipes, and spares legacy SSE code the cost of dirty upper halves.
    "vzeroall",
    "ret",
    ".cfi_endproc",
    ".size alea_vdso_keystream_avx2, . - alea_vdso_keystream_avx2",
    ".hidden alea_vdso_take_key",
    ".globl alea_vdso_take_key",
    ".type alea_vdso_take_key, @function",
    ".balign 32",
    "alea_vdso_take_key:",
    ".cfi_startproc",
    "movups xmm0, [rdi]",
    "movups xmm1, [rdi + 16]",
    "movups [rdi + {group}], xmm0",
    "movups [rdi + {group} + 16], xmm1",
    "xorps xmm0, xmm0",
    "xorps xmm1, xmm1",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm0",
    "ret",
    ".cfi_endproc",
    ".size alea_vdso_take_key, . - alea_vdso_take_key",
    ".section .text",
    group = const GROUP,
);

unsafe extern "sysv64" {
    fn alea_vdso_keystream_sse2();
    fn alea_vdso_keystream_avx2();
    fn alea_vdso_take_key();
}

/// Overwrites `groups` (at least one) groups from `out` on with the keystream of `key` from block
/// `counter` on, nonce zero. The last 64 bytes of `scratch_group` are overwritten, too; it may be the last
/// of the groups.
///
/// # Safety
/// All ranges are whole or fault; `scratch_group` is aligned to 32; `wide` only if AVX2 can be used.
#[inline(always)]
pub unsafe fn keystream(
    wide: bool,
    key: *const u8,
    counter: u32,
    out: *mut u8,
    groups: usize,
    scratch_group: *mut u8,
) {
    // SAFETY: the caller's promise; the routines change what a callee may change, and memory as told.
    unsafe {
        let scratch = scratch_group.add(SCRATCH);
        // Called by hand: the compiler would go through a table of addresses, which the image has not.
        if wide {
            asm!(
                "call {routine}",
                routine = sym alea_vdso_keystream_avx2,
                in("rdi") key, in("esi") counter, in("rdx") out, in("rcx") groups, in("r9") scratch,
                clobber_abi("sysv64"),
            );
        } else {
            asm!(
                "call {routine}",
                routine = sym alea_vdso_keystream_sse2,
                in("rdi") key, in("esi") counter, in("rdx") out, in("rcx") groups, in("r9") scratch,
                clobber_abi("sysv64"),
            );
        }
    }
}

/// Moves the first 32 bytes of a group to the key that lies behind it, leaving zeros.
///
/// # Safety
/// A group and 32 bytes behind it can be written, or fault.
#[inline(always)]
pub unsafe fn take_key(group: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "call {routine}",
            routine = sym alea_vdso_take_key,
            in("rdi") group,
            clobber_abi("sysv64"),
        );
    }
}
