# ChaCha20 keystream in vector registers (Intel syntax): the loops that the kernel and the vDSO share.
#
#   ALEA_KEYSTREAM_SSE2, ALEA_KEYSTREAM_AVX2 rotate
#       rdi = key[32], esi = counter, rdx = out, rcx = number of groups, at least 1,
#       r9 = 64 bytes of scratch, aligned to 32, which may be the end of the last group
#
# Each group is eight blocks, counter .. counter + 7, nonce zero: 512 bytes at out. State word i of
# eight (AVX2) or twice four (SSE2) blocks fills one register, and registers are stored as they are:
# the words of a group come out interleaved, which for a random generator is as good as in order.
#
# rotate names the macro that rotates a register's words, such as ALEA_SHIFT_AVX2.
#
# Changes rax, rcx, rdx, rsi, r8, flags, vector registers 0-15 and the scratch; the stack is not touched.
# What is left in registers and scratch depends on the key: the macro's user wipes it.
#
# Registers 0-7 hold words 0-7, 8 holds word 8 or 11, 9 and 10 words 9 and 10, 12-15 words 12-15; 11 is
# for rotations. The other of words 8 and 11 waits in the scratch: [r9] word 8, [r9 + 32] word 11.

.section .rodata.alea_chacha20, "a"
.balign 32
.Lalea_chacha20_lanes:
    .long 0, 1, 2, 3, 4, 5, 6, 7
.Lalea_chacha20_constants:
    .long 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574

.macro ALEA_SHIFT_AVX2 d, n
    vpslld ymm11, ymm\d, \n
    vpsrld ymm\d, ymm\d, 32 - \n
    vpor ymm\d, ymm\d, ymm11
.endm

.macro ALEA_QUARTER_AVX2 rotate, a, b, c, d
    vpaddd ymm\a, ymm\a, ymm\b
    vpxor ymm\d, ymm\d, ymm\a
    \rotate \d, 16
    vpaddd ymm\c, ymm\c, ymm\d
    vpxor ymm\b, ymm\b, ymm\c
    \rotate \b, 12
    vpaddd ymm\a, ymm\a, ymm\b
    vpxor ymm\d, ymm\d, ymm\a
    \rotate \d, 8
    vpaddd ymm\c, ymm\c, ymm\d
    vpxor ymm\b, ymm\b, ymm\c
    \rotate \b, 7
.endm

# out[i] = register + the word it started from, broadcast from memory.
.macro ALEA_FINISH_AVX2 reg, i, initial
    vpbroadcastd ymm11, dword ptr \initial
    vpaddd ymm\reg, ymm\reg, ymm11
    vmovdqu ymmword ptr [rdx + 32 * \i], ymm\reg
.endm

.macro ALEA_KEYSTREAM_AVX2 rotate
    lea r8, [rip + .Lalea_chacha20_constants]
2:
    vpbroadcastd ymm0, dword ptr [r8]
    vpbroadcastd ymm1, dword ptr [r8 + 4]
    vpbroadcastd ymm2, dword ptr [r8 + 8]
    vpbroadcastd ymm3, dword ptr [r8 + 12]
    vpbroadcastd ymm11, dword ptr [rdi + 28]
    vmovdqa ymmword ptr [r9 + 32], ymm11
    vpbroadcastd ymm4, dword ptr [rdi]
    vpbroadcastd ymm5, dword ptr [rdi + 4]
    vpbroadcastd ymm6, dword ptr [rdi + 8]
    vpbroadcastd ymm7, dword ptr [rdi + 12]
    vpbroadcastd ymm8, dword ptr [rdi + 16]
    vpbroadcastd ymm9, dword ptr [rdi + 20]
    vpbroadcastd ymm10, dword ptr [rdi + 24]
    vmovd xmm12, esi
    vpbroadcastd ymm12, xmm12
    vpaddd ymm12, ymm12, ymmword ptr [rip + .Lalea_chacha20_lanes]
    vpxor ymm13, ymm13, ymm13
    vpxor ymm14, ymm14, ymm14
    vpxor ymm15, ymm15, ymm15
    mov eax, 10
    .balign 32
3:
    ALEA_QUARTER_AVX2 \rotate, 0, 4, 8, 12
    ALEA_QUARTER_AVX2 \rotate, 1, 5, 9, 13
    ALEA_QUARTER_AVX2 \rotate, 2, 6, 10, 14
    vmovdqa ymmword ptr [r9], ymm8
    vmovdqa ymm8, ymmword ptr [r9 + 32]
    ALEA_QUARTER_AVX2 \rotate, 3, 7, 8, 15
    ALEA_QUARTER_AVX2 \rotate, 1, 6, 8, 12
    vmovdqa ymmword ptr [r9 + 32], ymm8
    vmovdqa ymm8, ymmword ptr [r9]
    ALEA_QUARTER_AVX2 \rotate, 0, 5, 10, 15
    ALEA_QUARTER_AVX2 \rotate, 2, 7, 8, 13
    ALEA_QUARTER_AVX2 \rotate, 3, 4, 9, 14
    dec eax
    jnz 3b
    ALEA_FINISH_AVX2 0, 0, [r8]
    ALEA_FINISH_AVX2 1, 1, [r8 + 4]
    ALEA_FINISH_AVX2 2, 2, [r8 + 8]
    ALEA_FINISH_AVX2 3, 3, [r8 + 12]
    ALEA_FINISH_AVX2 4, 4, [rdi]
    ALEA_FINISH_AVX2 5, 5, [rdi + 4]
    ALEA_FINISH_AVX2 6, 6, [rdi + 8]
    ALEA_FINISH_AVX2 7, 7, [rdi + 12]
    ALEA_FINISH_AVX2 8, 8, [rdi + 16]
    ALEA_FINISH_AVX2 9, 9, [rdi + 20]
    ALEA_FINISH_AVX2 10, 10, [rdi + 24]
    vmovdqa ymm8, ymmword ptr [r9 + 32]
    ALEA_FINISH_AVX2 8, 11, [rdi + 28]
    vmovd xmm11, esi
    vpbroadcastd ymm11, xmm11
    vpaddd ymm11, ymm11, ymmword ptr [rip + .Lalea_chacha20_lanes]
    vpaddd ymm12, ymm12, ymm11
    vmovdqu ymmword ptr [rdx + 32 * 12], ymm12
    vmovdqu ymmword ptr [rdx + 32 * 13], ymm13
    vmovdqu ymmword ptr [rdx + 32 * 14], ymm14
    vmovdqu ymmword ptr [rdx + 32 * 15], ymm15
    add rdx, 512
    add esi, 8
    dec rcx
    jnz 2b
.endm

.macro ALEA_ROTATE_SSE2 d, n
    movdqa xmm11, xmm\d
    pslld xmm\d, \n
    psrld xmm11, 32 - \n
    por xmm\d, xmm11
.endm

.macro ALEA_QUARTER_SSE2 a, b, c, d
    paddd xmm\a, xmm\b
    pxor xmm\d, xmm\a
    ALEA_ROTATE_SSE2 \d, 16
    paddd xmm\c, xmm\d
    pxor xmm\b, xmm\c
    ALEA_ROTATE_SSE2 \b, 12
    paddd xmm\a, xmm\b
    pxor xmm\d, xmm\a
    ALEA_ROTATE_SSE2 \d, 8
    paddd xmm\c, xmm\d
    pxor xmm\b, xmm\c
    ALEA_ROTATE_SSE2 \b, 7
.endm

.macro ALEA_BROADCAST_SSE2 reg, from
    movd xmm\reg, dword ptr \from
    pshufd xmm\reg, xmm\reg, 0
.endm

.macro ALEA_FINISH_SSE2 reg, i, initial
    ALEA_BROADCAST_SSE2 11, \initial
    paddd xmm\reg, xmm11
    movdqu xmmword ptr [rdx + 16 * \i], xmm\reg
.endm

.macro ALEA_KEYSTREAM_SSE2
    lea r8, [rip + .Lalea_chacha20_constants]
    add rcx, rcx
2:
    ALEA_BROADCAST_SSE2 0, [r8]
    ALEA_BROADCAST_SSE2 1, [r8 + 4]
    ALEA_BROADCAST_SSE2 2, [r8 + 8]
    ALEA_BROADCAST_SSE2 3, [r8 + 12]
    ALEA_BROADCAST_SSE2 11, [rdi + 28]
    movdqa xmmword ptr [r9 + 32], xmm11
    ALEA_BROADCAST_SSE2 4, [rdi]
    ALEA_BROADCAST_SSE2 5, [rdi + 4]
    ALEA_BROADCAST_SSE2 6, [rdi + 8]
    ALEA_BROADCAST_SSE2 7, [rdi + 12]
    ALEA_BROADCAST_SSE2 8, [rdi + 16]
    ALEA_BROADCAST_SSE2 9, [rdi + 20]
    ALEA_BROADCAST_SSE2 10, [rdi + 24]
    movd xmm12, esi
    pshufd xmm12, xmm12, 0
    paddd xmm12, xmmword ptr [rip + .Lalea_chacha20_lanes]
    pxor xmm13, xmm13
    pxor xmm14, xmm14
    pxor xmm15, xmm15
    mov eax, 10
    .balign 32
3:
    ALEA_QUARTER_SSE2 0, 4, 8, 12
    ALEA_QUARTER_SSE2 1, 5, 9, 13
    ALEA_QUARTER_SSE2 2, 6, 10, 14
    movdqa xmmword ptr [r9], xmm8
    movdqa xmm8, xmmword ptr [r9 + 32]
    ALEA_QUARTER_SSE2 3, 7, 8, 15
    ALEA_QUARTER_SSE2 1, 6, 8, 12
    movdqa xmmword ptr [r9 + 32], xmm8
    movdqa xmm8, xmmword ptr [r9]
    ALEA_QUARTER_SSE2 0, 5, 10, 15
    ALEA_QUARTER_SSE2 2, 7, 8, 13
    ALEA_QUARTER_SSE2 3, 4, 9, 14
    dec eax
    jnz 3b
    ALEA_FINISH_SSE2 0, 0, [r8]
    ALEA_FINISH_SSE2 1, 1, [r8 + 4]
    ALEA_FINISH_SSE2 2, 2, [r8 + 8]
    ALEA_FINISH_SSE2 3, 3, [r8 + 12]
    ALEA_FINISH_SSE2 4, 4, [rdi]
    ALEA_FINISH_SSE2 5, 5, [rdi + 4]
    ALEA_FINISH_SSE2 6, 6, [rdi + 8]
    ALEA_FINISH_SSE2 7, 7, [rdi + 12]
    ALEA_FINISH_SSE2 8, 8, [rdi + 16]
    ALEA_FINISH_SSE2 9, 9, [rdi + 20]
    ALEA_FINISH_SSE2 10, 10, [rdi + 24]
    movdqa xmm8, xmmword ptr [r9 + 32]
    ALEA_FINISH_SSE2 8, 11, [rdi + 28]
    movd xmm11, esi
    pshufd xmm11, xmm11, 0
    paddd xmm11, xmmword ptr [rip + .Lalea_chacha20_lanes]
    paddd xmm12, xmm11
    movdqu xmmword ptr [rdx + 16 * 12], xmm12
    movdqu xmmword ptr [rdx + 16 * 13], xmm13
    movdqu xmmword ptr [rdx + 16 * 14], xmm14
    movdqu xmmword ptr [rdx + 16 * 15], xmm15
    add rdx, 256
    add esi, 4
    dec rcx
    jnz 2b
.endm
