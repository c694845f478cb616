/*
 * A signal whose frame cannot be written: nothing of the program changes. SIGSEGV is raised with the mask, the vector
 * registers, the alternate stack and sigsuspend's old mask as they were; if SIGSEGV's own frame fails, it kills. A
 * handler that would leave the lower end of the alternate stack is no different.
 */
#include "check.h"
#include <ucontext.h>

static char *stack;
static volatile sig_atomic_t ran, loud = 1;
static volatile long mask_saved, mask_inside;

static long mask_of(const sigset_t *set)
{
	long mask = 0;
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGSEGV && sigismember(set, sig) == 1)
			mask |= 1L << sig;
	return mask;
}

static long mask_now(void)
{
	sigset_t now;
	sigprocmask(SIG_BLOCK, NULL, &now);
	return mask_of(&now);
}

/* On the normal stack: makes the alternate one writable, so that the next SIGHUP gets through. */
static void on_segv(int sig, siginfo_t *info, void *context)
{
	ran++;
	mask_saved = mask_of(&((ucontext_t *)context)->uc_sigmask);
	mask_inside = mask_now();
	if (loud)
		SAY("%s: code %s", sig_name(sig), info->si_code == SI_KERNEL ? "SI_KERNEL" : "other");
	/* Nothing that is in the vector registers now may come to the program. */
	__asm__ volatile("pcmpeqd %%xmm1,%%xmm1; pcmpeqd %%xmm9,%%xmm9" ::: "xmm1", "xmm9");
}

static void never(int sig)
{
	SAY("%s's handler runs", sig_name(sig));
}

static void set_up(int prot, int flags)
{
	struct sigaction segv = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	struct sigaction hup = { .sa_handler = never, .sa_flags = SA_ONSTACK };
	stack_t ss = { .ss_sp = stack, .ss_size = 16 * PAGE, .ss_flags = flags };
	sigaddset(&hup.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGHUP, &hup, NULL);
	MUST(sigaltstack(&ss, NULL));
	MUST(mprotect(stack, 16 * PAGE, prot));
}

/* Loads vector registers, sends SIGHUP to itself, and says whether they are as before. */
static int keeps_vectors(void)
{
	unsigned in[8] = { 0x11111111, 2, 3, 4, 0x99999999, 6, 7, 8 }, out[8] = { 0 };
	long result;
	__asm__ volatile("movups (%[in]),%%xmm1; movups 16(%[in]),%%xmm9; syscall;"
			 "movups %%xmm1,(%[out]); movups %%xmm9,16(%[out])"
			 : "=a"(result)
			 : "0"((long)SYS_kill), "D"((long)getpid()), "S"((long)SIGHUP), [in] "r"(in), [out] "r"(out)
			 : "rcx", "r11", "memory", "xmm1", "xmm9");
	return result == 0 && memcmp(in, out, sizeof in) == 0;
}

static void unwritable(const char *what, int prot)
{
	SAY("-- %s", what);
	ran = 0;
	set_up(prot, 0);
	IS(keeps_vectors());
	T(ran);
	SAY("mask after %#lx, inside %#lx, saved %#lx", mask_now(), mask_inside, mask_saved);
	IS(keeps_vectors());
	T(ran);
	MUST(mprotect(stack, 16 * PAGE, PROT_READ | PROT_WRITE));
	IS(keeps_vectors());
	T(ran);
}

static void quiet(int sig)
{
	ran += 100;
}

/* The stack begins at every place above memory that is read-only: so it is missed by the vector state, or by the rest. */
static void half_writable(void)
{
	SAY("-- the frame begins on writable memory and ends on memory that is not");
	int wrong = 0, written = 0, failed = 0;
	set_up(PROT_READ | PROT_WRITE, 0);
	struct sigaction hup = { .sa_handler = quiet, .sa_flags = SA_ONSTACK };
	sigaddset(&hup.sa_mask, SIGUSR1);
	sigaction(SIGHUP, &hup, NULL);
	MUST(mprotect(stack, 8 * PAGE, PROT_READ));
	loud = 0;
	for (size_t above = 64; above <= 4 * PAGE; above += 64) {
		stack_t ss = { .ss_sp = stack, .ss_size = 8 * PAGE + above };
		MUST(sigaltstack(&ss, NULL));
		ran = 0;
		wrong += !keeps_vectors() || mask_now() != 0 || (ran != 1 && ran != 100);
		failed += ran == 1;
		written += ran == 100;
	}
	loud = 1;
	SAY("wrong %d; some failed %d, some were written %d", wrong, failed > 0, written > 0);
	MUST(mprotect(stack, 16 * PAGE, PROT_READ | PROT_WRITE));
}

static void suspended(void)
{
	SAY("-- sigsuspend");
	sigset_t blocked, open;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigemptyset(&open);
	sigaddset(&open, SIGTERM);
	set_up(PROT_READ, 0);
	kill(getpid(), SIGHUP);
	T(sigsuspend(&open));
	IS(mask_now() == (1L << SIGHUP | 1L << SIGUSR2));
	IS(mask_saved == (1L << SIGHUP | 1L << SIGUSR2));
	IS(mask_inside == 1L << SIGTERM);
	sigemptyset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	MUST(mprotect(stack, 16 * PAGE, PROT_READ | PROT_WRITE));
}

static volatile int flags_inside;
static void look_at_stack(int sig)
{
	stack_t now;
	sigaltstack(NULL, &now);
	flags_inside = now.ss_flags;
}

static void disarmed(void)
{
	SAY("-- SS_AUTODISARM");
	stack_t old;
	set_up(PROT_READ, (int)(1u << 31));
	IS(keeps_vectors());
	MUST(sigaltstack(NULL, &old));
	SAY("still there %d", old.ss_size == 16 * PAGE);
	/* A handler that begins disarms, wherever it runs. */
	signal(SIGUSR1, look_at_stack);
	raise(SIGUSR1);
	MUST(sigaltstack(NULL, &old));
	SAY("inside flags %d, afterwards there %d", flags_inside, old.ss_size == 16 * PAGE);
	MUST(mprotect(stack, 16 * PAGE, PROT_READ | PROT_WRITE));
}

static void nested(int sig)
{
	ran++;
	raise(sig);
}

int main(void)
{
	stack = pages(16);
	unwritable("read-only", PROT_READ);
	unwritable("no access", PROT_NONE);
	half_writable();
	suspended();
	disarmed();
	CHILD("SIGSEGV there too") {
		set_up(PROT_READ, 0);
		struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };
		sigaction(SIGSEGV, &sa, NULL);
		raise(SIGHUP);
		SAY("not reached");
	} END;
	CHILD("SIGSEGV blocked") {
		set_up(PROT_READ, 0);
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGSEGV);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGHUP);
		SAY("not reached");
	} END;
	CHILD("SIGSEGV ignored") {
		set_up(PROT_READ, 0);
		signal(SIGSEGV, SIG_IGN);
		raise(SIGHUP);
		SAY("not reached");
	} END;
	CHILD("beyond the lower end of the alternate stack, where memory goes on") {
		stack_t ss = { .ss_sp = stack + 8 * PAGE, .ss_size = 8 * PAGE };
		struct sigaction sa = { .sa_handler = nested, .sa_flags = SA_ONSTACK | SA_NODEFER };
		MUST(sigaltstack(&ss, NULL));
		sigaction(SIGUSR1, &sa, NULL);
		signal(SIGSEGV, SIG_DFL);
		memset(stack, 0x5a, 8 * PAGE);
		raise(SIGUSR1);
		SAY("not reached");
	} END;
	CHILD("the same, SIGSEGV caught on another stack") {
		stack_t ss = { .ss_sp = stack + 8 * PAGE, .ss_size = 8 * PAGE };
		struct sigaction sa = { .sa_handler = nested, .sa_flags = SA_ONSTACK | SA_NODEFER };
		MUST(sigaltstack(&ss, NULL));
		sigaction(SIGUSR1, &sa, NULL);
		sa.sa_handler = never;
		sigaction(SIGSEGV, &sa, NULL);
		raise(SIGUSR1);
		SAY("not reached");
	} END;
	return 0;
}
