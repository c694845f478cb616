# Copies between the kernel and user space: see usercopy.rs.
# Conventions: rdi, rsi, rdx arguments as in C; no stack use; one fixup per kind of failure.

.section .usercopy.text, "ax"
# Records that the next instruction may fault.
.macro MAY_FAULT fixup
778:
.pushsection .ex_table, "a"
.quad 778b, \fixup
.popsection
.endm

# What the primitives are given may be any number: what is not the user's becomes the first address that nothing can be mapped at.
.macro BOUND register
    cmp \register, [rip + alea_user_end]
    cmova \register, [rip + alea_user_end]
.endm
.pushsection .rodata.user_end, "a"
.balign 8
alea_user_end: .quad {user_end}
.popsection

# --- rax = alea_copy_from_user(rdi dst, rsi src, rdx len), alea_copy_to_user ---
.macro COPY_USER name, users
.balign 64
.global \name
\name:
    BOUND \users
    mov rcx, rdx
    SMAP_SITE 1
    cmp rcx, 64
    jae 5f
    cmp ecx, 8
    jb 3f
2:
    MAY_FAULT alea_copy_bytes
    mov rax, [rsi]
    MAY_FAULT alea_copy_bytes
    mov [rdi], rax
    add rsi, 8
    add rdi, 8
    sub ecx, 8
    cmp ecx, 8
    jae 2b
3:
    test ecx, ecx
    jz 9f
    cmp ecx, 4
    jb 4f
    # 4..7: two overlapping words.
    MAY_FAULT alea_copy_bytes
    mov eax, [rsi]
    MAY_FAULT alea_copy_bytes
    mov edx, [rsi + rcx - 4]
    MAY_FAULT alea_copy_bytes
    mov [rdi], eax
    MAY_FAULT alea_copy_bytes
    mov [rdi + rcx - 4], edx
    xor eax, eax
    SMAP_SITE 0
    ret
4:
    MAY_FAULT alea_copy_bytes
    movzx eax, byte ptr [rsi]
    MAY_FAULT alea_copy_bytes
    mov [rdi], al
    inc rsi
    inc rdi
    dec ecx
    jnz 4b
9:
    xor eax, eax
    SMAP_SITE 0
    ret
5:
    cmp byte ptr [rip + ALEA_USE_ERMS], 0
    jne alea_copy_bytes
    shr rcx, 3
    and edx, 7
    MAY_FAULT alea_copy_words_fixup
    rep movsq
    mov ecx, edx
    test ecx, ecx
    jnz 4b
    xor eax, eax
    SMAP_SITE 0
    ret
.endm
    COPY_USER alea_copy_from_user, rsi
    COPY_USER alea_copy_to_user, rdi
alea_copy_words_fixup:
    lea rcx, [rdx + rcx * 8]
alea_copy_bytes:
    MAY_FAULT alea_copy_done
    rep movsb
alea_copy_done:
    mov rax, rcx
    SMAP_SITE 0
    ret

# --- rax = alea_clear_user(rdi dst, rsi len) ---
.balign 64
.global alea_clear_user
alea_clear_user:
    BOUND rdi
    mov rcx, rsi
    xor eax, eax
    SMAP_SITE 1
    cmp rcx, 64
    jae 5f
    cmp ecx, 8
    jb 3f
2:
    MAY_FAULT alea_clear_bytes
    mov [rdi], rax
    add rdi, 8
    sub ecx, 8
    cmp ecx, 8
    jae 2b
3:
    test ecx, ecx
    jz 9f
4:
    MAY_FAULT alea_clear_bytes
    mov [rdi], al
    inc rdi
    dec ecx
    jnz 4b
9:
    SMAP_SITE 0
    ret
5:
    cmp byte ptr [rip + ALEA_USE_ERMS], 0
    jne alea_clear_bytes
    mov edx, ecx
    shr rcx, 3
    and edx, 7
    MAY_FAULT alea_clear_words_fixup
    rep stosq
    mov ecx, edx
    test ecx, ecx
    jnz 4b
    SMAP_SITE 0
    ret
alea_clear_words_fixup:
    lea rcx, [rdx + rcx * 8]
alea_clear_bytes:
    xor eax, eax
    MAY_FAULT alea_clear_done
    rep stosb
alea_clear_done:
    mov rax, rcx
    SMAP_SITE 0
    ret

# --- single values ---
.macro GET_USER name, load:vararg
.balign 16
.global \name
\name:
    BOUND rdi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    \load
    xor edx, edx
    SMAP_SITE 0
    ret
.endm
    GET_USER alea_get_user_2, movzx eax, word ptr [rdi]
    GET_USER alea_get_user_4, mov eax, [rdi]
    GET_USER alea_get_user_8, mov rax, [rdi]
.balign 16
.global alea_peek_user_8  # reads what is mapped right now: nobody resolves the fault; for interrupt handlers
alea_peek_user_8:
    BOUND rdi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
.global alea_peek_load
alea_peek_load:
    mov rax, [rdi]
    xor edx, edx
    SMAP_SITE 0
    ret
.balign 16
.global alea_probe_8  # reads any address, a kernel one too; for backtraces
alea_probe_8:
    MAY_FAULT alea_value_fault
.global alea_probe_load
alea_probe_load:
    mov rax, [rdi]
    xor edx, edx
    ret
.macro PUT_USER name, store:vararg
.balign 16
.global \name
\name:
    BOUND rdi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    \store
    xor eax, eax
    SMAP_SITE 0
    ret
.endm
    PUT_USER alea_put_user_2, mov [rdi], si
    PUT_USER alea_put_user_4, mov [rdi], esi
    PUT_USER alea_put_user_8, mov [rdi], rsi
.balign 16
.global alea_put_user_16
alea_put_user_16:
    # As `BOUND`, in a register that the caller does not keep.
    mov rax, [rip + alea_user_end]
    cmp rdi, rax
    cmovb rax, rdi
    SMAP_SITE 1
    # In this order nothing is written if the second word lies above the user's memory.
    MAY_FAULT alea_value_fault
    mov [rax + 8], rdx
    MAY_FAULT alea_value_fault
    mov [rax], rsi
    xor eax, eax
    SMAP_SITE 0
    ret

# --- atomics: rax = value found, rdx = fault ---
.balign 16
.global alea_cmpxchg_user_4
alea_cmpxchg_user_4:
    BOUND rdi
    mov eax, esi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    lock cmpxchg [rdi], edx
    xor edx, edx
    SMAP_SITE 0
    ret
.balign 16
.global alea_xchg_user_4
alea_xchg_user_4:
    BOUND rdi
    mov eax, esi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    xchg [rdi], eax
    xor edx, edx
    SMAP_SITE 0
    ret
.balign 16
.global alea_xadd_user_4
alea_xadd_user_4:
    BOUND rdi
    mov eax, esi
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    lock xadd [rdi], eax
    xor edx, edx
    SMAP_SITE 0
    ret
alea_value_fault:
    mov eax, 1
    mov edx, eax
    SMAP_SITE 0
    ret

# --- rax = alea_xsave_user(rdi area, rsi mask, rdx mark, rcx size) ---
.macro PUT_FRAME store:vararg
    MAY_FAULT alea_value_fault
    \store
.endm
.balign 16
.global alea_xsave_user
alea_xsave_user:
    BOUND rdi
    mov r8, rdx
    xor eax, eax
    SMAP_SITE 1
    # The CPU leaves all of the header alone but the bits of `mask` in its first word.
    PUT_FRAME mov [rdi + 512], rax
    PUT_FRAME mov [rdi + 520], rax
    PUT_FRAME mov [rdi + 528], rax
    PUT_FRAME mov [rdi + 536], rax
    PUT_FRAME mov [rdi + 544], rax
    PUT_FRAME mov [rdi + 552], rax
    PUT_FRAME mov [rdi + 560], rax
    PUT_FRAME mov [rdi + 568], rax
    # And the software bytes.
    PUT_FRAME mov [rdi + 464], r8
    PUT_FRAME mov [rdi + 472], rsi
    PUT_FRAME mov [rdi + 480], rcx
    PUT_FRAME mov [rdi + 488], rax
    PUT_FRAME mov [rdi + 496], rax
    PUT_FRAME mov [rdi + 504], rax
    PUT_FRAME mov dword ptr [rdi + rcx], {magic2}
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    PUT_FRAME xsave64 [rdi]
    xor eax, eax
    SMAP_SITE 0
    ret

# --- rax = alea_xrstor_user(rdi area, rsi mask) ---
.balign 16
.global alea_xrstor_user
alea_xrstor_user:
    BOUND rdi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    SMAP_SITE 1
    MAY_FAULT alea_value_fault
    xrstor64 [rdi]
    xor eax, eax
    SMAP_SITE 0
    ret
.purgem PUT_FRAME

# --- strings: eight bytes at a time, bytes at the end or when a word faults ---
.macro FIND_ZERO
    # In: rax the word, r9 0x0101.., r10 0x8080..; out: rdx nonzero at the zero bytes, flags set.
    mov rdx, rax
    sub rdx, r9
    not rax
    and rdx, rax
    and rdx, r10
.endm
.balign 64
.global alea_strncpy_user
alea_strncpy_user:
    BOUND rsi
    mov rcx, rdx
    mov r8, rdx
    movabs r9, 0x0101010101010101
    movabs r10, 0x8080808080808080
    SMAP_SITE 1
    cmp rcx, 8
    jb 3f
2:
    MAY_FAULT alea_strncpy_bytes
    mov rax, [rsi]
    mov [rdi], rax
    FIND_ZERO
    jnz 6f
    add rsi, 8
    add rdi, 8
    sub rcx, 8
    cmp rcx, 8
    jae 2b
3:
alea_strncpy_bytes:
    test rcx, rcx
    jz 5f
4:
    MAY_FAULT alea_value_fault
    movzx eax, byte ptr [rsi]
    mov [rdi], al
    test al, al
    jz 5f
    inc rsi
    inc rdi
    dec rcx
    jnz 4b
5:
    mov rax, r8
    sub rax, rcx
    xor edx, edx
    SMAP_SITE 0
    ret
6:
    bsf rdx, rdx
    shr edx, 3
    mov rax, r8
    sub rax, rcx
    add rax, rdx
    xor edx, edx
    SMAP_SITE 0
    ret
.balign 64
.global alea_strnlen_user
alea_strnlen_user:
    BOUND rdi
    mov rcx, rsi
    mov r8, rsi
    movabs r9, 0x0101010101010101
    movabs r10, 0x8080808080808080
    SMAP_SITE 1
    cmp rcx, 8
    jb 3f
2:
    MAY_FAULT alea_strnlen_bytes
    mov rax, [rdi]
    FIND_ZERO
    jnz 6b
    add rdi, 8
    sub rcx, 8
    cmp rcx, 8
    jae 2b
3:
alea_strnlen_bytes:
    test rcx, rcx
    jz 5b
4:
    MAY_FAULT alea_value_fault
    cmp byte ptr [rdi], 0
    je 5b
    inc rdi
    dec rcx
    jnz 4b
    jmp 5b

# --- one of chacha20.s's routines, r8, on a place in user memory ---
.global alea_chacha20_user
alea_chacha20_user:
    BOUND rdx
    SMAP_SITE 1
    call r8
    SMAP_SITE 0
    ret
.purgem BOUND
.purgem COPY_USER
.purgem MAY_FAULT
.purgem GET_USER
.purgem PUT_USER
.purgem FIND_ZERO
