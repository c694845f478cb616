/*
 * Instructions a program may not run or that go wrong, and the signal of each: division by zero and overflow
 * (SIGFPE), ud2 (SIGILL), int3 (SIGTRAP), hlt, cli, in/out, lgdt, mov cr (SIGSEGV), jumps to kernel and
 * non-canonical addresses, x87 and SSE exceptions; unaligned access is none; single step traps.
 */
#include "check.h"
#include <setjmp.h>

static sigjmp_buf out;
static siginfo_t info;

static void on_fault(int s, siginfo_t *i, void *ctx)
{
	info = *i;
	siglongjmp(out, s);
}

#define FAULT(name, code) do { \
	int s_ = sigsetjmp(out, 1); \
	if (s_ == 0) { code; SAY("%s: no fault", name); } \
	else SAY("%s: %s code %s%d", name, sig_name(s_), info.si_code == SI_KERNEL ? "SI_KERNEL " : "", info.si_code); \
} while (0)
#define ASM(text) __asm__ volatile(text ::: "memory", "rax", "rcx", "rdx", "cc")

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t ss = { .ss_sp = pages(16), .ss_size = 16 * PAGE };
	sigaltstack(&ss, NULL);
	static const int sigs[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
	for (int i = 0; i < 5; i++)
		sigaction(sigs[i], &sa, NULL);
	FAULT("divide by zero", ASM("xor %%ecx,%%ecx; mov $1,%%eax; cdq; idiv %%ecx"));
	FAULT("divide overflow", ASM("mov $0x80000000,%%eax; mov $-1,%%edx; mov $-1,%%ecx; idiv %%ecx"));
	FAULT("ud2", ASM("ud2"));
	FAULT("int3", ASM("int3"));
	FAULT("int $3", ASM("int $3"));
	FAULT("int $4", ASM("int $4"));
	FAULT("int $0x81", ASM("int $0x81"));
	FAULT("int $14", ASM("int $14"));
	FAULT("int $0x20", ASM("int $0x20"));
	FAULT("hlt", ASM("hlt"));
	FAULT("cli", ASM("cli"));
	FAULT("sti", ASM("sti"));
	FAULT("in", ASM("mov $0x60,%%edx; in %%dx,%%al"));
	FAULT("out", ASM("mov $0x80,%%edx; out %%al,%%dx"));
	FAULT("mov cr0", ASM("mov %%cr0,%%rax"));
	FAULT("mov cr3", ASM("mov %%rax,%%cr3"));
	FAULT("mov dr7", ASM("mov %%rax,%%dr7"));
	FAULT("rdmsr", ASM("mov $0x10,%%ecx; rdmsr"));
	FAULT("wrmsr", ASM("mov $0xc0000080,%%ecx; wrmsr"));
	FAULT("lgdt", ASM("lgdt -16(%%rsp)"));
	FAULT("lidt", ASM("lidt -16(%%rsp)"));
	FAULT("ltr", ASM("ltr %%ax"));
	FAULT("invlpg", ASM("invlpg (%%rsp)"));
	FAULT("wbinvd", ASM("wbinvd"));
	FAULT("clts", ASM("clts"));
	FAULT("swapgs", ASM("swapgs"));
	FAULT("sysret", ASM("sysretq"));
	FAULT("iret to nonsense", ASM("pushq $0x33; pushq $0; pushq $0; pushq $0x8; pushq $0x1000; iretq"));
	FAULT("load bad selector", ASM("mov $0x1234,%%eax; mov %%eax,%%ds"));
	FAULT("load kernel selector", ASM("mov $0x10,%%eax; mov %%eax,%%ss"));
	FAULT("jump to kernel", ASM("mov $0xffffffff81000000,%%rax; jmp *%%rax"));
	FAULT("jump to non-canonical", ASM("mov $0x800000000000,%%rax; jmp *%%rax"));
	FAULT("jump to null", ASM("xor %%eax,%%eax; jmp *%%rax"));
	FAULT("ret to non-canonical", ASM("mov $0xdead000000000000,%%rax; push %%rax; ret"));
	FAULT("non-canonical stack pointer", ASM("mov $0x800000000010,%%rcx; xchg %%rcx,%%rsp; push %%rax; xchg %%rcx,%%rsp"));
	FAULT("unaligned load", ASM("mov -13(%%rsp),%%rax; lock incl -69(%%rsp)"));
	FAULT("unaligned movaps", ASM("movaps -13(%%rsp),%%xmm0"));
	FAULT("lock on a register form", ASM(".byte 0xf0,0x90"));
	FAULT("sse divide by zero", { unsigned m = 0x1d80; float z = 0;
		__asm__ volatile("ldmxcsr %0; mov $0x3f800000,%%eax; movd %%eax,%%xmm0; divss %1,%%xmm0" : : "m"(m), "m"(z) : "rax", "xmm0"); });
	FAULT("x87 divide by zero", { unsigned short cw = 0x37b;
		__asm__ volatile("fninit; fldcw %0; fld1; fldz; fdivrp; fwait" : : "m"(cw)); });
	__asm__ volatile("fninit");
	FAULT("single step", ASM("pushf; orl $0x100,(%%rsp); popf; nop; nop"));
	FAULT("iopl by popf", { unsigned long f;
		__asm__ volatile("pushf; orq $0x3000,(%%rsp); popf; pushf; pop %0" : "=r"(f));
		SAY("iopl %lu", (f >> 12) & 3); });
	/* default actions of the same */
	for (int i = 0; i < 5; i++)
		signal(sigs[i], SIG_DFL);
	CHILD("divide by zero") { ASM("xor %%ecx,%%ecx; mov $1,%%eax; cdq; idiv %%ecx"); } END;
	CHILD("hlt") { ASM("hlt"); } END;
	CHILD("cli") { ASM("cli"); } END;
	CHILD("ud2") { ASM("ud2"); } END;
	CHILD("int3") { ASM("int3"); } END;
	CHILD("jump to kernel") { ASM("mov $0xffffffff81000000,%%rax; jmp *%%rax"); } END;
	/* a blocked or ignored fault kills all the same */
	CHILD("blocked fault") {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		sigaction(SIGSEGV, &sa, NULL);
		*(volatile int *)8 = 1;
	} END;
	CHILD("ignored fault") {
		signal(SIGSEGV, SIG_IGN);
		*(volatile int *)8 = 1;
	} END;
	CHILD("sent while ignored") {
		signal(SIGSEGV, SIG_IGN);
		kill(getpid(), SIGSEGV);
		SAY("lives");
	} END;
	return 0;
}
