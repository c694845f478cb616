/*
 * sigaltstack: used only with SA_ONSTACK, flags while on it and off it, EPERM while in use, ENOMEM when too
 * small, SS_AUTODISARM, nested signals stay on it, and a stack overflow can be caught there.
 */
#include "check.h"
#include <setjmp.h>
#include <sys/resource.h>

static char *alt;
static size_t size;
static volatile int on_alt[8], runs;
static sigjmp_buf out;

static int inside(void *p) { return (char *)p >= alt && (char *)p < alt + size; }

static void handler(int s)
{
	stack_t now, other = { .ss_sp = alt, .ss_size = size };
	int local;
	sigaltstack(NULL, &now);
	on_alt[runs] = inside(&local);
	SAY("handler %d: on the alternate stack %d, flags %d", runs, on_alt[runs], now.ss_flags);
	runs++;
	if (inside(&local))
		T(sigaltstack(&other, NULL));
	if (s == SIGUSR1 && runs < 2)
		raise(SIGUSR2);
}

static void overflow_caught(int s, siginfo_t *i, void *ctx)
{
	int local;
	SAY("overflow: %s code %d, on the alternate stack %d", sig_name(s), i->si_code, inside(&local));
	siglongjmp(out, 1);
}

static volatile int sink;

static int __attribute__((noinline)) recurse(int n)
{
	volatile char frame[8192];
	frame[0] = (char)n;
	if (n > 1000000)
		return 0;
	return recurse(n + 1) + frame[0] + sink;
}

static void set(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	sigaction(sig, &sa, NULL);
}

int main(void)
{
	stack_t ss = { 0 }, old;
	size = 16 * PAGE;
	alt = pages(16);
	T(sigaltstack(NULL, &old));
	SAY("at first: flags %d size %zu", old.ss_flags, old.ss_size);
	ss.ss_sp = alt;
	ss.ss_size = 100;
	T(sigaltstack(&ss, NULL));
	ss.ss_size = size;
	ss.ss_flags = 7;
	T(sigaltstack(&ss, NULL));
	ss.ss_flags = SS_ONSTACK;
	T(sigaltstack(&ss, NULL));
	ss.ss_flags = 0;
	T(sigaltstack(&ss, &old));
	T(sigaltstack(NULL, &old));
	SAY("now: flags %d, size right %d, place right %d", old.ss_flags, old.ss_size == size, old.ss_sp == alt);
	set(SIGUSR1, 0);
	set(SIGUSR2, 0);
	raise(SIGUSR1);
	runs = 0;
	set(SIGUSR1, SA_ONSTACK);
	raise(SIGUSR1);
	runs = 0;
	set(SIGUSR2, SA_ONSTACK);
	raise(SIGUSR1);
	runs = 0;
	T(sigaltstack(NULL, &old));
	SAY("after: flags %d", old.ss_flags);
	ss.ss_flags = (int)(1u << 31);	/* SS_AUTODISARM */
	T(sigaltstack(&ss, NULL));
	raise(SIGUSR2);
	T(sigaltstack(NULL, &old));
	SAY("autodisarm, after: flags %#x, size right %d", old.ss_flags, old.ss_size == size);
	ss.ss_flags = SS_DISABLE;
	T(sigaltstack(&ss, NULL));
	T(sigaltstack(NULL, &old));
	SAY("disabled: flags %d size %zu", old.ss_flags, old.ss_size);
	/* the stack limit */
	CHILD("overflow with no alternate stack") {
		struct rlimit rl = { 256 << 10, RLIM_INFINITY };
		setrlimit(RLIMIT_STACK, &rl);
		signal(SIGSEGV, handler);
		recurse(0);
	} END;
	CHILD("overflow with one") {
		struct rlimit rl = { 256 << 10, RLIM_INFINITY };
		struct sigaction sa = { .sa_sigaction = overflow_caught, .sa_flags = SA_SIGINFO | SA_ONSTACK };
		ss.ss_flags = 0;
		T(sigaltstack(&ss, NULL));
		setrlimit(RLIMIT_STACK, &rl);
		sigaction(SIGSEGV, &sa, NULL);
		if (!sigsetjmp(out, 1))
			recurse(0);
	} END;
	CHILD("alternate stack that is not mapped") {
		ss.ss_sp = (void *)0x10000;
		ss.ss_flags = 0;
		T(sigaltstack(&ss, NULL));
		raise(SIGUSR1);
		SAY("not reached");
	} END;
	return 0;
}
