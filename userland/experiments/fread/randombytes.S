/*
 * randombytes(out, len) without a library: %rdi is where to, %rsi how many bytes.
 *
 * A kernel that gives fewer bytes than were asked for ends the program with status 1: no caller goes on with half a key.
 */

SYS_getrandom = 318
SYS_exit = 60
BUFFER = 256

	.text

/* One system call for each call. */
	.globl	randombytes_syscall
	.type	randombytes_syscall, @function
randombytes_syscall:
	mov	$SYS_getrandom, %eax
	xor	%edx, %edx
	syscall
	cmp	%rsi, %rax
	jne	fail
	ret
	.size	randombytes_syscall, . - randombytes_syscall

/*
 * 16 bytes from a buffer, with one 16-byte copy; %rdx points to the state: how many bytes are left, 8 bytes that nobody uses, and the
 * buffer, which is taken from its end. A state of zeroes is an empty buffer.
 */
from_buffer:
	mov	(%rdx), %rax
	sub	$16, %rax
	jb	1f
	movups	16(%rdx,%rax), %xmm0
	movups	%xmm0, (%rdi)
	mov	%rax, (%rdx)
	ret
1:	push	%rdi
	push	%rdx
	mov	$SYS_getrandom, %eax
	lea	16(%rdx), %rdi
	mov	$BUFFER, %esi
	xor	%edx, %edx
	syscall
	pop	%rdx
	pop	%rdi
	cmp	$BUFFER, %rax
	jne	fail
	movq	$BUFFER, (%rdx)
	jmp	from_buffer

/* The article's: the state lies in .bss, and a child of fork goes on with its parent's. */
	.globl	randombytes_buffered
	.type	randombytes_buffered, @function
randombytes_buffered:
	lea	state(%rip), %rdx
	jmp	from_buffer
	.size	randombytes_buffered, . - randombytes_buffered

/* The same with a state in a page that a child gets as zeroes (MADV_WIPEONFORK). */
	.globl	randombytes_wiped
	.type	randombytes_wiped, @function
randombytes_wiped:
	mov	wiped_state(%rip), %rdx
	jmp	from_buffer
	.size	randombytes_wiped, . - randombytes_wiped

fail:
	mov	$1, %edi
	mov	$SYS_exit, %eax
	syscall

	.bss
	.balign	16
state:	.skip	16 + BUFFER
	.globl	wiped_state
wiped_state:
	.skip	8

/* Without this note the linker makes the program's stack executable. */
	.section .note.GNU-stack,"",@progbits
