/*
 * entry_blocked: a debug exception that MOV SS holds back until the next instruction has run, which is one that goes into the kernel (CVE-2018-8897):
 * a watchpoint on the selector that is loaded, or a single step, and behind it a call, a breakpoint, a fault, or a refused interrupt.
 * What is told of the watchpoint depends on where the CPU tells it; that the program goes on, and that the kernel does.
 */
#include "../trace/trace.h"
#include <ucontext.h>

static volatile struct { unsigned short selector[4]; } watched __attribute__((aligned(8)));
static volatile int signals;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	(void)info;
	signals++;
	registers[REG_EFL] &= ~0x100;
	/* All of them have two bytes. */
	if (signal == SIGILL || signal == SIGSEGV)
		registers[REG_RIP] += 2;
}

#define STEPPED "pushf; orq $0x100,(%%rsp); popf; "
#define LOAD(before, text, number) ({ long result_ = number; \
	__asm__ volatile("lea -128(%%rsp),%%rsp; " before "mov %1,%%ss; " text "; pushf; andq $~0x100,(%%rsp); popf; lea 128(%%rsp),%%rsp" \
		: "+a"(result_) : "m"(watched.selector[0]), "D"(0L) : "rcx", "r11", "memory", "cc"); result_; })
/* Whether the call was made; of the others, that a handler has run. */
#define EACH(before) do { \
	for (int n = 0; n < 50; n++) { \
		if (LOAD(before, "syscall", SYS_getpid) != getpid()) \
			_exit(10); \
		signals = 0; LOAD(before, "int3", 0); if (signals < 1) _exit(11); \
		signals = 0; LOAD(before, "ud2", 0); if (signals < 1) _exit(12); \
		signals = 0; LOAD(before, "movb (%%rdi),%%al", 0); if (signals < 1) _exit(13); \
		signals = 0; LOAD(before, "int $0x90", 0); if (signals < 1) _exit(14); \
	} } while (0)

static void run(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	for (int n = 0; n < 3; n++)
		sigaction((int[]){ SIGTRAP, SIGILL, SIGSEGV }[n], &action, NULL);
	EACH("");
	EACH(STEPPED);
}

#define SET(pid, n, value) MUST(ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg) + 8 * (n), (long)(value)))

int main(void)
{
	unsigned short selector;
	__asm__("mov %%ss,%0" : "=r"(selector));
	watched.selector[0] = selector;
	CHILD("without a watchpoint") { run(); } END;
	TRACED(pid, run());
	SET(pid, 0, &watched);
	/* Two bytes, to be read or written. */
	SET(pid, 7, 1L | 3L << 16 | 1L << 18);
	long met = 0;
	int status, signal = 0;
	for (;;) {
		MUST(ptrace(PTRACE_CONT, pid, 0, signal));
		MUST(waitpid(pid, &status, 0));
		if (!WIFSTOPPED(status))
			break;
		siginfo_t info;
		MUST(ptrace(PTRACE_GETSIGINFO, pid, 0, &info));
		/* The watchpoint's goes no further; where it comes with a step, the program has to switch the step off. */
		long dr6 = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg) + 48, 0);
		int is_watched = WSTOPSIG(status) == SIGTRAP && info.si_code == TRAP_HWBKPT && dr6 & 1 && !(dr6 & 0x4000);
		met += is_watched;
		signal = is_watched ? 0 : WSTOPSIG(status);
	}
	say_status("with one", status);
	IS(met > 0);
	return 0;
}
