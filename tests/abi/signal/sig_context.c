/*
 * sig_context: the way back from a handler: flags that a program may set itself stay as they are through a signal, those of the context
 * are taken as far as a program may have them; a vector state that no CPU has is SIGSEGV, which finds mask and registers restored.
 */
#include "check.h"
#include <ucontext.h>

static volatile unsigned long inside, saved;
static volatile unsigned long set_in_context;
static volatile int segvs, mask_then, wreck_at, wreck_by;

static unsigned long flags_now(void)
{
	unsigned long flags;
	__asm__ volatile("pushfq\n\tpop %0" : "=r"(flags));
	return flags;
}

static void handler(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
	ucontext_t *uc = context;
	inside = flags_now();
	saved = (unsigned long)uc->uc_mcontext.gregs[REG_EFL];
	uc->uc_mcontext.gregs[REG_EFL] ^= (long)set_in_context;
	if (wreck_by)
		((unsigned char *)uc->uc_mcontext.fpregs)[wreck_at] |= (unsigned char)wreck_by;
}

static void on_segv(int sig UNUSED, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	segvs++;
	mask_then = sigismember(&uc->uc_sigmask, SIGUSR1);
	if (info->si_code != SI_KERNEL)
		SAY("code %d", info->si_code);
	if (segvs > 3)
		_exit(1);
}

enum { CF = 1, DF = 0x400, NT = 0x4000, AC = 0x40000, ID = 0x200000, SHOWN = CF | DF | NT | AC | ID | 0x3000 | 0x100 };

/* Sets flags, sends itself SIGUSR1, and gives the flags afterwards. */
static unsigned long with(unsigned long flags)
{
	unsigned long after;
	long result = SYS_kill;
	__asm__ volatile("pushfq\n\torq %[set], (%%rsp)\n\tpopfq\n\tsyscall\n\tpushfq\n\tpopq %[after]\n\tpushq $0x202\n\tpopfq"
			 : "+a"(result), [after] "=&r"(after)
			 : [set] "r"(flags), "D"((long)getpid()), "S"((long)SIGUSR1)
			 : "rcx", "r11", "memory", "cc");
	return after;
}

static void flags(void)
{
	static const unsigned long kinds[] = { 0, CF, DF, NT, AC, ID, NT | ID | DF };
	SAY("-- flags");
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		set_in_context = 0;
		unsigned long after = with(kinds[i]) & (SHOWN & ~CF);
		printf("%#lx: inside %#lx, saved %#lx, after %#lx\n", kinds[i], inside & (SHOWN & ~CF), saved & (SHOWN & ~CF), after);
		set_in_context = kinds[i];
		printf("in the context: after %#lx\n", with(0) & SHOWN & ~(i == 1 ? 0UL : CF));
	}
	set_in_context = 0x3000 | 0x20000 | 0x200 | 0x8000;
	printf("what no program may: after %#lx\n", with(0) & 0x2b200);
	set_in_context = 0;
}

static void wrecks(void)
{
	static const struct { const char *name; int at, by; } kinds[] = {
		{ "an unknown part", 512 + 7, 0x20 }, { "compacted", 520 + 7, 0x80 }, { "a reserved byte", 528, 1 },
	};
	SAY("-- vector states that no CPU has");
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		segvs = 0, mask_then = -1;
		wreck_at = kinds[i].at, wreck_by = kinds[i].by;
		raise(SIGUSR1);
		printf("%s: %d times SIGSEGV, SIGUSR1 blocked then: %d\n", kinds[i].name, segvs, mask_then);
	}
	wreck_by = 0;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_sigaction = on_segv;
	sigaction(SIGSEGV, &sa, NULL);
	flags();
	wrecks();
	return 0;
}
