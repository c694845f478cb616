/*
 * trace_regs: registers, general and of vectors, read and written; stepping; memory read and written, read-only text
 * too; what no program may have is refused.
 */
#include "trace.h"

__attribute__((noipa)) static int target(int value)
{
	return value + 1;
}

static double vectors(double a)
{
	double result;
	__asm__ volatile("movsd %1, %%xmm7\n\tmov $1, %%edi\n\tint3\n\tmovsd %%xmm7, %0" : "=m"(result) : "m"(a) : "xmm7", "rdi");
	return result;
}

static const char constant[] = "constant";
static const char *volatile shown = constant;
static volatile long word = 0x1122334455667788;

int main(void)
{
	struct user_regs_struct regs, other;
	SAY("-- general registers");
	TRACED(a, {
		long result;
		__asm__ volatile("mov $0x1234, %%r12\n\tmov $0x77, %%eax\n\tint3\n\tadd %%r12, %%rax" : "=a"(result) : : "r12");
		_exit(result == 0x10 ? 1 : 2);
	});
	MUST(ptrace(PTRACE_CONT, a, 0, 0));
	stop_of("int3", a);
	siginfo_t info;
	MUST(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	SAY("code %#x", info.si_code);
	T(ptrace(PTRACE_GETREGS, a, 0, &regs));
	IS(regs.r12 == 0x1234 && regs.rax == 0x77 && regs.orig_rax == (unsigned long)-1);
	SAY("cs %#llx, ss %#llx, ds %llu, es %llu, fs %llu, gs %llu", regs.cs, regs.ss, regs.ds, regs.es, regs.fs, regs.gs);
	IS((regs.eflags & 0x200) != 0 && (regs.eflags & 0x100) == 0);
	IS(regs.fs_base != 0 && regs.gs_base == 0);
	regs.r12 = 0x9;
	regs.rax = 0x7;
	T(ptrace(PTRACE_SETREGS, a, 0, &regs));
	struct iovec iov = { &other, sizeof other };
	T(ptrace(PTRACE_GETREGSET, a, NT_PRSTATUS, &iov));
	SAY("%zu bytes", iov.iov_len);
	IS(memcmp(&regs, &other, sizeof regs) == 0);
	iov.iov_len = 16;
	other.r15 = 3, other.r14 = 4;
	T(ptrace(PTRACE_SETREGSET, a, NT_PRSTATUS, &iov));
	MUST(ptrace(PTRACE_GETREGS, a, 0, &regs));
	IS(regs.r15 == 3 && regs.r14 == 4 && regs.r12 == 9);
	iov.iov_len = 9;
	T(ptrace(PTRACE_GETREGSET, a, NT_PRSTATUS, &iov));
	T(ptrace(PTRACE_GETREGSET, a, 0x999, &iov));

	SAY("-- what no program may have");
	regs.eflags = -1;
	T(ptrace(PTRACE_SETREGS, a, 0, &regs));
	MUST(ptrace(PTRACE_GETREGS, a, 0, &regs));
	SAY("flags %#llx", regs.eflags & ~0x8d5ULL);
	T(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, eflags), 0x246));
	T(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, cs), 0x10));
	T(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, ss), 0x18));
	T(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, fs_base), 0xffff800000000000));
	T(ptrace(PTRACE_POKEUSER, a, offsetof(struct user_regs_struct, gs_base), 0x800000000000));
	T(ptrace(PTRACE_POKEUSER, a, 3, 0));
	T(ptrace(PTRACE_POKEUSER, a, sizeof(struct user), 0));
	T(ptrace(PTRACE_PEEKUSER, a, sizeof(struct user), 0));
	T(ptrace(PTRACE_PEEKUSER, a, 5, 0));
	T(ptrace(PTRACE_PEEKUSER, a, offsetof(struct user, u_tsize), 0));
	T(ptrace(PTRACE_CONT, a, 0, 0));
	stop_of("the end", a);
	TRACED(b, pause());
	MUST(ptrace(PTRACE_POKEUSER, b, offsetof(struct user_regs_struct, rip), 0x8000000000000000));
	T(ptrace(PTRACE_CONT, b, 0, 0));
	stop_of("at no address", b);
	T(ptrace(PTRACE_CONT, b, 0, SIGSEGV));
	stop_of("the end", b);

	SAY("-- vector registers");
	TRACED(c, _exit(vectors(2.5) == 7.25 ? 3 : 4));
	MUST(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("int3", c);
	struct user_fpregs_struct fp;
	T(ptrace(PTRACE_GETFPREGS, c, 0, &fp));
	double value;
	memcpy(&value, &fp.xmm_space[7 * 4], sizeof value);
	SAY("xmm7 %g, control word %#x, mxcsr %#x", value, fp.cwd, fp.mxcsr);
	value = 7.25;
	memcpy(&fp.xmm_space[7 * 4], &value, sizeof value);
	T(ptrace(PTRACE_SETFPREGS, c, 0, &fp));
	static unsigned char state[8192] __attribute__((aligned(64))), again[8192];
	iov = (struct iovec){ state, sizeof state };
	T(ptrace(PTRACE_GETREGSET, c, NT_X86_XSTATE, &iov));
	IS(iov.iov_len >= 576);
	memcpy(&value, state + 160 + 7 * 16, sizeof value);
	SAY("xmm7 %g, states %s", value, *(uint64_t *)(state + 464) & 3 ? "named" : "unnamed");
	T(ptrace(PTRACE_SETREGSET, c, NT_X86_XSTATE, &iov));
	size_t size = iov.iov_len;
	struct iovec second = { again, sizeof again };
	MUST(ptrace(PTRACE_GETREGSET, c, NT_X86_XSTATE, &second));
	IS(second.iov_len == size && memcmp(state + 160, again + 160, 256) == 0);
	iov.iov_len = 512;
	T(ptrace(PTRACE_GETREGSET, c, NT_PRFPREG, &iov));
	*(uint32_t *)(state + 24) = 0xffffffff;
	T(ptrace(PTRACE_SETREGSET, c, NT_PRFPREG, &iov));
	T(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("the end", c);

	SAY("-- memory");
	TRACED(d, _exit(word == 0x42 && shown[0] == 'K' && target(1) == 2 ? 5 : 6));
	errno = 0;
	SAY("%#lx", ptrace(PTRACE_PEEKDATA, d, &word, 0));
	T(ptrace(PTRACE_POKEDATA, d, &word, 0x42));
	long text = ptrace(PTRACE_PEEKTEXT, d, constant, 0);
	IS(memcmp(&text, constant, sizeof text) == 0);
	memcpy(&text, "Konstant", 8);
	T(ptrace(PTRACE_POKETEXT, d, constant, text));
	IS(shown[0] == 'c');
	T(ptrace(PTRACE_PEEKDATA, d, 8, 0));
	T(ptrace(PTRACE_POKEDATA, d, 8, 0));
	T(ptrace(PTRACE_PEEKDATA, d, KERNEL_ADDRESS, 0));
	T(ptrace(PTRACE_POKEDATA, d, NON_CANONICAL, 0));

	SAY("-- a breakpoint");
	long code = ptrace(PTRACE_PEEKTEXT, d, target, 0);
	T(ptrace(PTRACE_POKETEXT, d, target, (code & ~0xffL) | 0xcc));
	T(ptrace(PTRACE_CONT, d, 0, 0));
	stop_of("target", d);
	MUST(ptrace(PTRACE_GETREGS, d, 0, &regs));
	IS(regs.rip == (unsigned long)target + 1 && (int)regs.rdi == 1);
	MUST(ptrace(PTRACE_POKETEXT, d, target, code));
	regs.rip = (unsigned long)target;
	MUST(ptrace(PTRACE_SETREGS, d, 0, &regs));
	T(ptrace(PTRACE_SINGLESTEP, d, 0, 0));
	stop_of("a step", d);
	MUST(ptrace(PTRACE_GETSIGINFO, d, 0, &info));
	MUST(ptrace(PTRACE_GETREGS, d, 0, &other));
	SAY("code %d", info.si_code);
	IS(other.rip > regs.rip && other.rip < regs.rip + 16 && (other.eflags & 0x100) == 0);
	IS((unsigned long)info.si_addr == other.rip);
	T(ptrace(PTRACE_CONT, d, 0, 0));
	stop_of("the end", d);

	SAY("-- steps over a call");
	TRACED(e, { long r; __asm__ volatile("int3\n\tmov $39, %%eax\n\tsyscall\n\tnop\n\tnop" : "=a"(r) : : "rcx", "r11"); _exit(0); });
	MUST(ptrace(PTRACE_CONT, e, 0, 0));
	stop_of("int3", e);
	MUST(ptrace(PTRACE_GETREGS, e, 0, &regs));
	for (int step = 0; step < 4; step++) {
		MUST(ptrace(PTRACE_SINGLESTEP, e, 0, 0));
		stop_of("a step", e);
		MUST(ptrace(PTRACE_GETREGS, e, 0, &other));
		MUST(ptrace(PTRACE_GETSIGINFO, e, 0, &info));
		SAY("at +%llu, code %d", other.rip - regs.rip, info.si_code);
	}
	IS(other.rax == (unsigned long)e);
	T(ptrace(PTRACE_CONT, e, 0, 0));
	stop_of("the end", e);

	SAY("-- a step into a handler");
	TRACED(f, { signal(SIGUSR1, (void (*)(int))(void *)target); raise(SIGUSR1); });
	MUST(ptrace(PTRACE_CONT, f, 0, 0));
	stop_of("raise", f);
	T(ptrace(PTRACE_SINGLESTEP, f, 0, SIGUSR1));
	stop_of("the handler", f);
	MUST(ptrace(PTRACE_GETREGS, f, 0, &regs));
	IS(regs.rip == (unsigned long)target && regs.rdi == SIGUSR1);
	T(ptrace(PTRACE_CONT, f, 0, 0));
	stop_of("the end", f);
	return 0;
}
