# ChaCha20 keystream in vector registers, for the kernel (System V calling convention). The loops are
# those of kernel/vdso/src/keystream.s, which stands before this file.
#
#   alea_chacha20_sse2, alea_chacha20_avx2, alea_chacha20_avx512_machine
#       (rdi = key[32], esi = counter, rdx = out, rcx = number of groups, at least 1)
#
# The caller's vector registers are saved on the stack and restored, whole: no vector state is lost
# and nothing secret stays behind. Legacy SSE instructions leave the upper halves alone; VEX ones
# clear everything above 256 bits, so on a machine whose AVX-512 state is switched on the last entry
# point saves 512 bits.

.macro ALEA_SAVE_AVX2 op, width, size
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \op [rsp + 64 + \size * \r], \width\r
    .endr
.endm

.macro ALEA_RESTORE_AVX2 op, width, size
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \op \width\r, [rsp + 64 + \size * \r]
    .endr
.endm

.section .text.alea_chacha20, "ax"

.macro ALEA_CHACHA20_AVX2 name, move, width, size
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
    ALEA_KEYSTREAM_AVX2
    # Words 8 and 11 of the last state, as they were before the key was added.
    vpxor ymm0, ymm0, ymm0
    vmovdqa ymmword ptr [rsp], ymm0
    vmovdqa ymmword ptr [rsp + 32], ymm0
    ALEA_RESTORE_AVX2 \move, \width, \size
    leave
    ret
.size \name, . - \name
.endm

ALEA_CHACHA20_AVX2 alea_chacha20_avx2, vmovdqu, ymm, 32
ALEA_CHACHA20_AVX2 alea_chacha20_avx512_machine, vmovdqu64, zmm, 64

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
    ALEA_KEYSTREAM_SSE2
    pxor xmm0, xmm0
    movdqa xmmword ptr [rsp], xmm0
    movdqa xmmword ptr [rsp + 32], xmm0
    .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqa xmm\r, xmmword ptr [rsp + 64 + 16 * \r]
    .endr
    leave
    ret
.size alea_chacha20_sse2, . - alea_chacha20_sse2

.section .text
