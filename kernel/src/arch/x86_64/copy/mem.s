# The routines that compiled code calls for blocks of memory; see mem.rs. Arguments: rdi, rsi, rdx; result: rax.

.section .text.alea_mem, "ax", @progbits

.globl memmove
.type memmove, @function
.balign 16
memmove:
    mov rax, rdi
    cmp rdx, 32
    jbe 10f
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jae 40f
    # The target begins inside the source: from the end, 32 bytes at a time.
1:
    mov r8, [rsi + rdx - 8]
    mov r9, [rsi + rdx - 16]
    mov r10, [rsi + rdx - 24]
    mov r11, [rsi + rdx - 32]
    mov [rdi + rdx - 8], r8
    mov [rdi + rdx - 16], r9
    mov [rdi + rdx - 24], r10
    mov [rdi + rdx - 32], r11
    sub rdx, 32
    cmp rdx, 32
    ja 1b
    jmp 10f

.globl memcpy
.type memcpy, @function
.balign 16
memcpy:
    mov rax, rdi
    cmp rdx, 32
    ja 30f
10: # Up to 32 bytes, which may overlap: all is loaded before anything is stored.
    cmp edx, 16
    jb 11f
    mov rcx, [rsi]
    mov r8, [rsi + 8]
    mov r9, [rsi + rdx - 16]
    mov r10, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + 8], r8
    mov [rdi + rdx - 16], r9
    mov [rdi + rdx - 8], r10
    ret
11:
    cmp edx, 8
    jb 12f
    mov rcx, [rsi]
    mov r8, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], r8
    ret
12:
    cmp edx, 4
    jb 13f
    mov ecx, [rsi]
    mov r8d, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], r8d
    ret
13: # The first byte, the middle one and the last.
    test edx, edx
    jz 14f
    mov r9d, edx
    shr r9d
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi + rdx - 1]
    movzx r10d, byte ptr [rsi + r9]
    mov [rdi], cl
    mov [rdi + r9], r10b
    mov [rdi + rdx - 1], r8b
14:
    ret
30: # More than 32 bytes that do not overlap.
    cmp rdx, 64
    ja 40f
    mov rcx, [rsi]
    mov r8, [rsi + 8]
    mov r9, [rsi + 16]
    mov r10, [rsi + 24]
    mov [rdi], rcx
    mov [rdi + 8], r8
    mov [rdi + 16], r9
    mov [rdi + 24], r10
    mov rcx, [rsi + rdx - 32]
    mov r8, [rsi + rdx - 24]
    mov r9, [rsi + rdx - 16]
    mov r10, [rsi + rdx - 8]
    mov [rdi + rdx - 32], rcx
    mov [rdi + rdx - 24], r8
    mov [rdi + rdx - 16], r9
    mov [rdi + rdx - 8], r10
    ret
40: # More than 32 bytes whose target does not begin inside the source. The last eight are loaded before they can
    # be overwritten.
    mov r8, [rsi + rdx - 8]
    lea r9, [rdi + rdx - 8]
    lea rcx, [rdx - 1]
    shr rcx, 3
    rep movsq
    mov [r9], r8
    ret

.globl memset
.type memset, @function
.balign 16
memset:
    mov rax, rdi
    movzx ecx, sil
    movabs r8, 0x0101010101010101
    imul rcx, r8
    cmp rdx, 32
    ja 30f
    cmp edx, 16
    jb 11f
    mov [rdi], rcx
    mov [rdi + 8], rcx
    mov [rdi + rdx - 16], rcx
    mov [rdi + rdx - 8], rcx
    ret
11:
    cmp edx, 8
    jb 12f
    mov [rdi], rcx
    mov [rdi + rdx - 8], rcx
    ret
12:
    cmp edx, 4
    jb 13f
    mov [rdi], ecx
    mov [rdi + rdx - 4], ecx
    ret
13:
    test edx, edx
    jz 14f
    mov r9d, edx
    shr r9d
    mov [rdi], cl
    mov [rdi + r9], cl
    mov [rdi + rdx - 1], cl
14:
    ret
30:
    cmp rdx, 64
    ja 40f
    mov [rdi], rcx
    mov [rdi + 8], rcx
    mov [rdi + 16], rcx
    mov [rdi + 24], rcx
    mov [rdi + rdx - 32], rcx
    mov [rdi + rdx - 24], rcx
    mov [rdi + rdx - 16], rcx
    mov [rdi + rdx - 8], rcx
    ret
40:
    mov r9, rdi
    mov rax, rcx
    mov [rdi + rdx - 8], rcx
    lea rcx, [rdx - 1]
    shr rcx, 3
    rep stosq
    mov rax, r9
    ret

.globl memcmp
.type memcmp, @function
.globl bcmp
.type bcmp, @function
.balign 16
memcmp:
bcmp:
    sub rdx, 8
    jb 20f
    xor ecx, ecx
    test rdx, rdx
    jz 12f
11:
    mov rax, [rdi + rcx]
    mov r8, [rsi + rcx]
    cmp rax, r8
    jne 13f
    add rcx, 8
    cmp rcx, rdx
    jb 11b
12: # The last eight, of which some may have been seen.
    mov rax, [rdi + rdx]
    mov r8, [rsi + rdx]
    cmp rax, r8
    jne 13f
    xor eax, eax
    ret
13:
    bswap rax
    bswap r8
    cmp rax, r8
    sbb eax, eax
    or eax, 1
    ret
20: # Less than eight: rdx is eight too small.
    add edx, 4
    js 21f
    mov eax, [rdi]
    mov ecx, [rsi]
    mov r8d, [rdi + rdx]
    mov r9d, [rsi + rdx]
    shl r8, 32
    shl r9, 32
    or rax, r8
    mov r8, rcx
    or r8, r9
    cmp rax, r8
    jne 13b
    xor eax, eax
    ret
21: # Less than four.
    add edx, 4
    jz 24f
    xor ecx, ecx
22:
    movzx eax, byte ptr [rdi + rcx]
    movzx r8d, byte ptr [rsi + rcx]
    sub eax, r8d
    jne 23f
    inc ecx
    cmp ecx, edx
    jb 22b
23:
    ret
24:
    xor eax, eax
    ret
