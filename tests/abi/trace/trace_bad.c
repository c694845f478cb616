/*
 * trace_bad: what a tracer asks that it may not or that makes no sense: init, requests that are not there, words of unmapped,
 * read-only and the vDSO's pages, states of vector registers that no CPU has; steps over blocks; a thousand tracees whose
 * tracer dies.
 */
#include "trace.h"
#include <sys/auxv.h>

enum { SINGLEBLOCK = 33 };

static const char constant[4096] __attribute__((aligned(4096))) = "constant";

static void requests(void)
{
	SAY("-- requests that are not there, or have nothing to say");
	static const long numbers[] = { 10, 11, 18, 19, 20, 21, 22, 23, 34, 35, 100, 0x41ff, 0x4212, 0x42ff, 0x7fffffff, -1 };
	TRACED(a, pause());
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		errno = 0;
		long result = syscall(SYS_ptrace, numbers[i], a, 8, 8);
		printf("%#lx: %s\n", numbers[i], result < 0 ? err_name(errno) : "done");
	}
	T(ptrace(PTRACE_CONT, a, 0, 65));
	T(ptrace(PTRACE_CONT, a, 0, -1));
	T(ptrace(PTRACE_SINGLESTEP, a, 0, 1000));
	T(ptrace(SINGLEBLOCK, a, 0, 1000));
	T(ptrace(PTRACE_SETOPTIONS, a, 0, 0x80000000));
	T(ptrace(PTRACE_SETOPTIONS, a, 0, 0x200));
	T(ptrace(PTRACE_GETSIGINFO, a, 0, 8));
	T(ptrace(PTRACE_GETEVENTMSG, a, 0, 8));
	T(ptrace(PTRACE_GETREGS, a, 0, 8));
	T(ptrace(PTRACE_SETREGS, a, 0, 8));
	T(ptrace(PTRACE_SETREGS, a, 0, KERNEL_ADDRESS));
	T(ptrace(PTRACE_GETREGSET, a, NT_PRSTATUS, 8));
	T(ptrace(PTRACE_GETSIGMASK, a, 4, 8));
	T(ptrace(PTRACE_SETSIGMASK, a, 8, 8));
	T(ptrace(PTRACE_PEEKSIGINFO, a, 8, 8));
	T(ptrace(PTRACE_LISTEN, a, 0, 0));
	T(ptrace(PTRACE_INTERRUPT, a, 0, 0));
	T(ptrace(PTRACE_SEIZE, a, 8, 0));
	T(ptrace(PTRACE_DETACH, a, 0, 65));
	kill(a, SIGKILL);
	stop_of("the end", a);
}

static void memory(void)
{
	SAY("-- memory");
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
	char *page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + PAGE, PAGE);
	memset(page, 'p', PAGE);
	TRACED(a, pause());
	errno = 0;
	IS(ptrace(PTRACE_PEEKDATA, a, vdso, 0) == *(long *)vdso && errno == 0);
	T(ptrace(PTRACE_POKEDATA, a, vdso + 8, 0x1122334455667788));
	IS(ptrace(PTRACE_PEEKDATA, a, vdso + 8, 0) == 0x1122334455667788);
	IS(*(long *)(vdso + 8) != 0x1122334455667788);
	T(ptrace(PTRACE_POKEDATA, a, constant, 0x4242424242424242));
	IS(ptrace(PTRACE_PEEKDATA, a, constant, 0) == 0x4242424242424242 && constant[0] == 'c');
	T(ptrace(PTRACE_POKEDATA, a, page + PAGE, 1));
	T(ptrace(PTRACE_PEEKDATA, a, page + PAGE, 0));
	T(ptrace(PTRACE_POKEDATA, a, page + PAGE - 4, -1));
	errno = 0;
	IS(ptrace(PTRACE_PEEKDATA, a, page + PAGE - 8, 0) == 0x7070707070707070 || errno);
	T(ptrace(PTRACE_PEEKDATA, a, page + PAGE - 4, 0));
	T(ptrace(PTRACE_PEEKDATA, a, page + 2 * PAGE - 4, 0));
	T(ptrace(PTRACE_POKEDATA, a, shared, 1));
	T(ptrace(PTRACE_PEEKDATA, a, shared, 0));
	T(ptrace(PTRACE_POKEDATA, a, none, 5));
	T(ptrace(PTRACE_PEEKDATA, a, none, 0));
	T(ptrace(PTRACE_POKEDATA, a, -8, 5));
	T(ptrace(PTRACE_POKEDATA, a, 0x00007ffffffff000, 5));
	T(ptrace(PTRACE_POKEDATA, a, 0xffffffffff600000, 5));
	kill(a, SIGKILL);
	stop_of("the end", a);
	IS(*(long *)vdso == *(long *)"\177ELF\2\1\1");
	munmap(page, PAGE);
	munmap(page + 2 * PAGE, PAGE);
}

static unsigned char state[16384] __attribute__((aligned(64))), before[16384] __attribute__((aligned(64)));

static void offer(pid_t pid, const char *what, size_t at, unsigned char value, size_t len)
{
	memcpy(state, before, sizeof state);
	state[at] |= value;
	struct iovec iov = { state, len };
	errno = 0;
	long result = ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov);
	printf("%s: %s", what, result < 0 ? err_name(errno) : "taken");
	iov = (struct iovec){ state, sizeof state };
	MUST(ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov));
	printf(", %s\n", memcmp(state, before, 512) == 0 ? "the same" : "changed");
}

static void vectors(void)
{
	SAY("-- vector registers that no program has");
	TRACED(a, pause());
	struct iovec iov = { before, sizeof before };
	MUST(ptrace(PTRACE_GETREGSET, a, NT_X86_XSTATE, &iov));
	size_t len = iov.iov_len;
	offer(a, "as they were", 0, 0, len);
	offer(a, "reserved bits of MXCSR", 27, 0x80, len);
	offer(a, "an unknown part", 512 + 7, 0x20, len);
	offer(a, "compacted", 520 + 7, 0x80, len);
	offer(a, "a part in the compacted list", 520, 1, len);
	offer(a, "the first reserved byte", 528, 1, len);
	offer(a, "the last reserved byte", 575, 1, len);
	offer(a, "too short", 0, 0, len - 8);
	offer(a, "of odd length", 0, 0, len - 1);
	offer(a, "nothing", 0, 0, 0);
	offer(a, "FXSAVE's part", 0, 0, 512);
	T(ptrace(PTRACE_SETFPREGS, a, 0, 8));
	kill(a, SIGKILL);
	stop_of("the end", a);
}

static void registers(void)
{
	SAY("-- registers that would leave user mode");
	static const struct { const char *name; size_t at; unsigned long value; } pokes[] = {
#define REG(name, value) { #name " " #value, offsetof(struct user_regs_struct, name), value }
		REG(cs, 0), REG(cs, 0x08), REG(cs, 0x10), REG(cs, 0x30), REG(ss, 0), REG(ss, 0x10), REG(ds, 0x10), REG(es, 0x18), REG(fs, 0x08), REG(gs, 0x10),
		REG(fs_base, 0x00007ffffffff000), REG(fs_base, 0x00007fffffffffff), REG(gs_base, 0xffffffff80000000), REG(gs_base, -1),
		REG(eflags, 0x3000), REG(eflags, 0x100000), REG(eflags, 0x20000), REG(eflags, 0), REG(eflags, 0x40000), REG(orig_rax, -1),
	};
	TRACED(a, pause());
	for (unsigned i = 0; i < sizeof pokes / sizeof *pokes; i++) {
		errno = 0;
		long result = ptrace(PTRACE_POKEUSER, a, pokes[i].at, pokes[i].value);
		printf("%s: %s", pokes[i].name, result < 0 ? err_name(errno) : "done");
		if (pokes[i].at == offsetof(struct user_regs_struct, eflags))
			printf(", then %#lx", ptrace(PTRACE_PEEKUSER, a, pokes[i].at, 0) & ~0x8d5L);
		puts("");
	}
	kill(a, SIGKILL);
	stop_of("the end", a);
	static const unsigned long places[] = { 0, 0x00007fffffffffff, 0x0000800000000000, 0xffff800000000000, 0xffffffff81000000, 0xffffffffff600000, -1 };
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		TRACED(b, pause());
		MUST(ptrace(PTRACE_POKEUSER, b, offsetof(struct user_regs_struct, rip), places[i]));
		MUST(ptrace(PTRACE_POKEUSER, b, offsetof(struct user_regs_struct, rsp), places[i]));
		MUST(ptrace(PTRACE_CONT, b, 0, 0));
		printf("%#lx ", places[i]);
		stop_of("leads to", b);
		MUST(ptrace(PTRACE_CONT, b, 0, SIGSEGV));
		stop_of("the end", b);
	}
}

static void of_init(void)
{
	SAY("-- init, and who may");
	/* It is not stopped by this, and free again when this child ends. */
	CHILD("root") { T(ptrace(PTRACE_SEIZE, 1, 0, 0)); T(ptrace(PTRACE_PEEKDATA, 1, 8, 0)); T(ptrace(PTRACE_CONT, 1, 0, 0)); fflush(stdout); } END;
	CHILD("another user") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		T(ptrace(PTRACE_SEIZE, 1, 0, 0));
		T(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
		fflush(stdout);
	} END;
}

/* Whether steps of blocks exist depends on the CPU: there are as many as steps of instructions, or fewer. */
static void blocks(void)
{
	SAY("-- blocks");
	long steps[2] = { 0, 0 };
	for (int kind = 0; kind < 2; kind++) {
		TRACED(a, __asm__ volatile("int3\n\tmov $50, %%ecx\n1:\n\tnop\n\tnop\n\tdec %%ecx\n\tjnz 1b\n\tint3" : : : "ecx"));
		MUST(ptrace(PTRACE_CONT, a, 0, 0));
		stop_of("int3", a);
		siginfo_t info = { .si_code = 0 };
		do {
			steps[kind]++;
			MUST(ptrace(kind ? SINGLEBLOCK : (int)PTRACE_SINGLESTEP, a, 0, 0));
			int status;
			MUST(waitpid(a, &status, 0));
			if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
				say_status("otherwise", status);
			MUST(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
		} while (info.si_code == 2 && steps[kind] < 1000);
		MUST(ptrace(PTRACE_CONT, a, 0, 0));
		stop_of("the end", a);
	}
	IS(steps[0] >= 200 && steps[0] < 210);
	IS(steps[1] >= 50 && steps[1] <= steps[0]);
}

static void thousand(void)
{
	SAY("-- a thousand whose tracer dies");
	enum { MANY = 1000 };
	int alive[2], ready[2];
	MUST(pipe(alive));
	MUST(pipe(ready));
	pid_t tracer = (pid_t)MUST(fork());
	if (tracer == 0) {
		for (int i = 0; i < MANY; i++) {
			pid_t pid = (pid_t)MUST(fork());
			if (pid == 0) {
				close(ready[1]);
				for (;;)
					pause();
			}
			MUST(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL));
			if (i & 1) {
				MUST(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
				MUST(waitpid(pid, NULL, __WALL));
			}
		}
		MUST(write(ready[1], "x", 1));
		for (;;)
			pause();
	}
	close(alive[1]);
	char byte;
	MUST(read(ready[0], &byte, 1));
	kill(tracer, SIGKILL);
	say_status("the tracer", reap(tracer));
	/* All of them held the other end. */
	IS(read(alive[0], &byte, 1) == 0);
}

int main(void)
{
	requests();
	memory();
	vectors();
	registers();
	of_init();
	blocks();
	thousand();
	return 0;
}
