# ChaCha20 keystream in vector registers, for the kernel (System V calling convention). The loops are
# those of kernel/vdso/src/keystream.s, which stands before this file.
#
#   alea_chacha20_sse2, alea_chacha20_avx2_shift, alea_chacha20_avx2_shuffle, alea_chacha20_avx512
#       (rdi = key[32], esi = counter, rdx = out, rcx = number of groups, at least 1)
#       returns eax = 1, or 0 if a place in user space cannot be written: how far it came is not told
#
# A fault between the labels _from and _to goes on at _to (`extable`); nothing is paged in, because the
# registers belong to somebody who must not lose the CPU. r10 says whether the end was reached.
#
# The caller's vector registers are saved on the stack and restored, whole, and their place is wiped: no vector state is
# lost and nothing secret stays behind. Legacy SSE instructions leave the upper halves alone; VEX ones
# clear everything above 256 bits, so the last, for a machine whose AVX-512 state is switched on, saves
# 512 bits.

.section .rodata.alea_chacha20, "a"
.balign 32
.Lalea_chacha20_by_16:
    .rept 2
    .byte 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
    .endr
.Lalea_chacha20_by_8:
    .rept 2
    .byte 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14
    .endr

# A rotation by whole bytes is one VPSHUFB, or three shifts.
.macro ALEA_SHUFFLE_AVX2 d, n
    .if \n == 16
    vpshufb ymm\d, ymm\d, ymmword ptr [rip + .Lalea_chacha20_by_16]
    .elseif \n == 8
    vpshufb ymm\d, ymm\d, ymmword ptr [rip + .Lalea_chacha20_by_8]
    .else
    ALEA_SHIFT_AVX2 \d, \n
    .endif
.endm

.macro ALEA_ROTATE_AVX512 d, n
    vprold ymm\d, ymm\d, \n
.endm

.macro ALEA_SAVE_AVX2 op, width, size
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \op [rsp + 64 + \size * \r], \width\r
    .endr
.endm

# What is saved is the caller's, keys of a program perhaps: nothing of it stays on the stack. Flags are kept.
.macro ALEA_RESTORE_AVX2 op, width, size
    vpxor xmm0, xmm0, xmm0
    .irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \op \width\r, [rsp + 64 + \size * \r]
    \op [rsp + 64 + \size * \r], \width\()0
    .endr
    \op \width\()0, [rsp + 64]
    ALEA_WIPE_FIRST \size
.endm

# The place of the register that was restored last, when none is left that could be zero.
.macro ALEA_WIPE_FIRST size
    .irp at, 0,8,16,24,32,40,48,56
    .if \at < \size
    mov qword ptr [rsp + 64 + \at], 0
    .endif
    .endr
.endm

# ZF = whether the saved registers have nothing above 128 bits. Changes register 0.
.macro ALEA_UPPER_HALVES size
    .if \size == 32
    vmovdqu xmm0, [rsp + 64 + 16]
    .irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vpor xmm0, xmm0, [rsp + 64 + 32 * \r + 16]
    .endr
    .else
    vmovdqu ymm0, [rsp + 64 + 16]
    .irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vpor ymm0, ymm0, [rsp + 64 + 64 * \r + 16]
    .endr
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vpor ymm0, ymm0, [rsp + 64 + 64 * \r + 32]
    .endr
    .endif
    vptest ymm0, ymm0
.endm

# Records where a fault on user memory may happen, from here on, and where it goes.
.macro ALEA_FAULT_RANGE name
\name\()_from:
    .pushsection .rodata.alea_chacha20_ranges, "a"
    .long \name\()_from - alea_chacha20_ranges, \name\()_to - alea_chacha20_ranges
    .popsection
.endm

.section .rodata.alea_chacha20_ranges, "a"
.balign 4
.globl alea_chacha20_ranges
alea_chacha20_ranges:

.section .text.alea_chacha20, "ax"

.macro ALEA_CHACHA20_AVX2 name, rotate, move, width, size
.globl \name
.type \name, @function
.balign 32
\name:
    push rbp
    mov rbp, rsp
    sub rsp, 64 + 16 * \size
    and rsp, -64
    mov r9, rsp
    ALEA_SAVE_AVX2 \move, \width, \size
    xor r10d, r10d
    ALEA_FAULT_RANGE \name
    ALEA_KEYSTREAM_AVX2 \rotate
    mov r10d, 1
\name\()_to:
    # Words 8 and 11 of the last state, as they were before the key was added.
    vpxor ymm0, ymm0, ymm0
    vmovdqa ymmword ptr [rsp], ymm0
    vmovdqa ymmword ptr [rsp + 32], ymm0
    # Zeros that are loaded count as in use, and make the caller's legacy SSE instructions slow.
    ALEA_UPPER_HALVES \size
    ALEA_RESTORE_AVX2 \move, \width, \size
    jnz 4f
    vzeroupper
4:
    mov eax, r10d
    leave
    ret
.size \name, . - \name
.endm

ALEA_CHACHA20_AVX2 alea_chacha20_avx2_shift, ALEA_SHIFT_AVX2, vmovdqu, ymm, 32
ALEA_CHACHA20_AVX2 alea_chacha20_avx2_shuffle, ALEA_SHUFFLE_AVX2, vmovdqu, ymm, 32
ALEA_CHACHA20_AVX2 alea_chacha20_avx512, ALEA_ROTATE_AVX512, vmovdqu64, zmm, 64

.globl alea_chacha20_sse2
.type alea_chacha20_sse2, @function
.balign 32
alea_chacha20_sse2:
    push rbp
    mov rbp, rsp
    sub rsp, 64 + 16 * 16
    and rsp, -64
    mov r9, rsp
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqa xmmword ptr [rsp + 64 + 16 * \r], xmm\r
    .endr
    xor r10d, r10d
    ALEA_FAULT_RANGE alea_chacha20_sse2
    ALEA_KEYSTREAM_SSE2
    mov r10d, 1
alea_chacha20_sse2_to:
    pxor xmm0, xmm0
    movdqa xmmword ptr [rsp], xmm0
    movdqa xmmword ptr [rsp + 32], xmm0
    .irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqa xmm\r, xmmword ptr [rsp + 64 + 16 * \r]
    movdqa xmmword ptr [rsp + 64 + 16 * \r], xmm0
    .endr
    movdqa xmm0, xmmword ptr [rsp + 64]
    ALEA_WIPE_FIRST 16
    mov eax, r10d
    leave
    ret
.size alea_chacha20_sse2, . - alea_chacha20_sse2

.section .text
