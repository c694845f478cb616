/*
 * sigaction: which signals and flags are taken, SA_RESETHAND, SA_NODEFER, sa_mask while the handler runs,
 * SA_SIGINFO's siginfo, the order of pending signals, queued real-time signals, and unqueued ordinary ones.
 */
#include "check.h"

static volatile int depth, deepest, runs, order[16], ordered;
static volatile siginfo_t info;
static sigset_t seen_mask;

static void count(int s) { runs++; }

static void nest(int s)
{
	runs++;
	if (++depth > deepest)
		deepest = depth;
	if (runs < 3)
		raise(s);
	depth--;
}

static void keep(int s, siginfo_t *i, void *ctx)
{
	memcpy((void *)&info, i, sizeof info);
	sigprocmask(SIG_BLOCK, NULL, &seen_mask);
}

static void note(int s)
{
	if (ordered < 16)
		order[ordered++] = s;
}

static void values(int s, siginfo_t *i, void *ctx)
{
	if (ordered < 16)
		order[ordered++] = i->si_value.sival_int;
}

static void set(int sig, void *handler, int flags, int blocked)
{
	struct sigaction sa = { .sa_flags = flags };
	if (flags & SA_SIGINFO)
		sa.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
	else
		sa.sa_handler = (void (*)(int))handler;
	if (blocked)
		sigaddset(&sa.sa_mask, blocked);
	MUST(sigaction(sig, &sa, NULL));
}

static void say_order(const char *what)
{
	printf("%s:", what);
	for (int i = 0; i < ordered; i++)
		printf(" %d", order[i]);
	putchar('\n');
	ordered = 0;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = count }, old;
	T(sigaction(0, &sa, NULL));
	T(sigaction(65, &sa, NULL));
	T(sigaction(-1, &sa, NULL));
	T(sigaction(SIGKILL, &sa, NULL));
	T(sigaction(SIGSTOP, &sa, NULL));
	T(sigaction(SIGKILL, NULL, &old));
	T(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4));
	T(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, NULL, 16));
	T(sigprocmask(9, &(sigset_t){ 0 }, NULL));
	T(sigprocmask(9, NULL, NULL));

	set(SIGUSR1, nest, 0, 0);
	runs = deepest = 0;
	raise(SIGUSR1);
	SAY("deferred: runs %d depth %d", runs, deepest);
	set(SIGUSR1, nest, SA_NODEFER, 0);
	runs = deepest = 0;
	raise(SIGUSR1);
	SAY("nodefer: runs %d depth %d", runs, deepest);
	set(SIGUSR1, count, SA_RESETHAND, 0);
	runs = 0;
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &old);
	SAY("resethand: runs %d, then default %d", runs, old.sa_handler == SIG_DFL);

	set(SIGUSR1, keep, SA_SIGINFO, SIGUSR2);
	raise(SIGUSR1);
	SAY("raise: code %d pid mine %d uid %d, blocks itself %d and USR2 %d", info.si_code, info.si_pid == getpid(),
	    info.si_uid, sigismember(&seen_mask, SIGUSR1), sigismember(&seen_mask, SIGUSR2));
	sigprocmask(SIG_BLOCK, NULL, &seen_mask);
	SAY("after: USR1 %d USR2 %d", sigismember(&seen_mask, SIGUSR1), sigismember(&seen_mask, SIGUSR2));
	kill(getpid(), SIGUSR1);
	SAY("kill: code %d pid mine %d", info.si_code, info.si_pid == getpid());
	sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 1234 });
	SAY("sigqueue: code %d value %d", info.si_code, info.si_value.sival_int);
	set(SIGCHLD, keep, SA_SIGINFO, 0);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(9);
	reap(pid);
	SAY("child: signo %d code %d status %d pid right %d", info.si_signo, info.si_code, info.si_status, info.si_pid == pid);
	set(SIGALRM, keep, SA_SIGINFO, 0);
	sigset_t alrm, none;
	sigemptyset(&none);
	sigemptyset(&alrm);
	sigaddset(&alrm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alrm, NULL);
	alarm(1);
	sigsuspend(&none);
	sigprocmask(SIG_UNBLOCK, &alrm, NULL);
	SAY("alarm: code %d", info.si_code);

	/* blocked: ordinary signals merge, real-time ones queue; the lowest number is delivered first */
	sigset_t all, before;
	static const int sigs[] = { SIGTERM, SIGUSR2, SIGHUP, SIGUSR1, 40, 35, SIGUSR1, 35 };
	for (int i = 0; i < 8; i++) {
		struct sigaction n = { .sa_handler = note };
		sigfillset(&n.sa_mask);
		sigaction(sigs[i], &n, NULL);
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < 8; i++)
		kill(getpid(), sigs[i]);
	sigset_t pending;
	sigpending(&pending);
	SAY("pending: HUP %d INT %d USR1 %d 35 %d", sigismember(&pending, SIGHUP), sigismember(&pending, SIGINT),
	    sigismember(&pending, SIGUSR1), sigismember(&pending, 35));
	sigprocmask(SIG_SETMASK, &before, NULL);
	say_order("order, every handler blocking all");
	set(36, values, SA_SIGINFO, 0);
	sigprocmask(SIG_BLOCK, &all, &before);
	for (int i = 1; i <= 5; i++)
		sigqueue(getpid(), 36, (union sigval){ .sival_int = i * 11 });
	sigprocmask(SIG_SETMASK, &before, NULL);
	say_order("queued values");
	/* ignored while pending: gone; blocked and ignored: dropped at once */
	set(SIGUSR1, note, 0, 0);
	sigprocmask(SIG_BLOCK, &all, &before);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_IGN);
	sigpending(&pending);
	SAY("pending after ignoring %d", sigismember(&pending, SIGUSR1));
	set(SIGUSR1, note, 0, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	say_order("nothing");
	/* KILL and STOP cannot be blocked */
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_BLOCK, NULL, &pending);
	SAY("blocked: KILL %d STOP %d TERM %d", sigismember(&pending, SIGKILL), sigismember(&pending, SIGSTOP),
	    sigismember(&pending, SIGTERM));
	T(sigqueue(getpid(), 65, (union sigval){ 0 }));
	T(sigqueue(999999999, SIGUSR1, (union sigval){ 0 }));
	siginfo_t forged = { .si_signo = SIGUSR1, .si_code = SI_USER };
	T(syscall(SYS_rt_sigqueueinfo, getppid(), SIGUSR1, &forged));
	return 0;
}
