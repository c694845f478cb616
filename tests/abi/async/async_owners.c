/*
 * Who gets the signal of O_ASYNC: a process, a thread, a group, nobody; the dead; whom the one who named the owner may not signal;
 * what F_GETOWN then says; and that a full queue gives a plain SIGIO.
 */
#include "told.h"
#include <pthread.h>
#include <sys/resource.h>

static int p[2];
static pid_t gettid_(void) { return (pid_t)syscall(SYS_gettid); }

static void tick(const char *what)
{
	MUST(write(p[1], "a", 1));
	told_within(what, p[0], 0);
}

static pid_t thread_id;

static void *other(void *arg)
{
	struct f_owner_ex me = { F_OWNER_TID, thread_id = gettid_() };
	(void)arg;
	MUST(fcntl(p[0], F_SETOWN_EX, &me));
	MUST(write(p[1], "a", 1));
	told_within("in the thread", p[0], 0);
	return NULL;
}

static void shown(const char *what)
{
	struct f_owner_ex ex = { -1, -1 };
	int old = (int)syscall(SYS_fcntl, p[0], F_GETOWN, 0);
	int r = fcntl(p[0], F_GETOWN_EX, &ex);
	pid_t me = getpid();
	SAY("%s: F_GETOWN %s, F_GETOWN_EX %d: type %d, %s", what, old == me ? "me" : old == -me ? "my group" : old ? "another" : "none", r,
	    ex.type, ex.pid == me ? "me" : ex.pid ? "another" : "none");
}

static void kinds(void)
{
	pthread_t thread;
	shown("new");
	tick("without an owner");
	MUST(fcntl(p[0], F_SETOWN, getpid()));
	shown("me");
	tick("me");
	setpgid(0, 0);
	MUST(fcntl(p[0], F_SETOWN, -getpid()));
	shown("my group");
	tick("my group");
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	/* Who joins is told before the thread is quite gone. */
	while (syscall(SYS_tgkill, getpid(), thread_id, 0) == 0)
		sleep_ms(1);
	shown("a thread that is gone");
	tick("a thread that is gone");
	struct f_owner_ex ex = { F_OWNER_PGRP, getpid() };
	T(fcntl(p[0], F_SETOWN_EX, &ex));
	shown("my group by F_SETOWN_EX");
	tick("my group by F_SETOWN_EX");
	ex = (struct f_owner_ex){ F_OWNER_TID, getpid() };
	T(fcntl(p[0], F_SETOWN_EX, &ex));
	shown("the first thread");
	tick("the first thread");
	ex = (struct f_owner_ex){ 3, getpid() };
	T(fcntl(p[0], F_SETOWN_EX, &ex));
	ex = (struct f_owner_ex){ F_OWNER_PID, 30000 };
	T(fcntl(p[0], F_SETOWN_EX, &ex));
	shown("after one that is not there");
	ex = (struct f_owner_ex){ F_OWNER_PID, 0 };
	T(fcntl(p[0], F_SETOWN_EX, &ex));
	shown("nobody");
	tick("nobody");
	T(fcntl(p[0], F_SETOWN, 30000));
	T(fcntl(p[0], F_SETOWN, -30000));
	T(fcntl(p[0], F_SETOWN, INT_MIN));
	T(fcntl(p[0], F_SETSIG, 65));
	T(fcntl(p[0], F_SETSIG, -1));
	T(fcntl(p[0], F_GETSIG) - told);
}

/* A child that waits for a signal and says with its status what came. */
static pid_t waiter(unsigned uid, int ready)
{
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		siginfo_t info;
		if (uid)
			MUST(setresuid(uid, uid, uid));
		MUST(write(ready, "r", 1));
		int signal = told_take(&info, 300);
		_exit(signal == told && info.si_code == POLL_IN ? 1 : signal == SIGIO ? 2 : signal < 0 ? 0 : 3);
	}
	return child;
}

static void children(void)
{
	int ready[2], status;
	char c;
	MUST(pipe(ready));
	for (int is_user = 0; is_user < 2; is_user++) {
		for (unsigned uid = 0; uid <= 1000; uid += 500) {
			pid_t child = waiter(uid, ready[1]);
			MUST(read(ready[0], &c, 1));
			if (is_user)
				MUST(setresuid(500, 500, 0));
			int r = fcntl(p[0], F_SETOWN, child), e = errno;
			if (is_user)
				MUST(setresuid(0, 0, 0));
			MUST(write(p[1], "a", 1));
			MUST(waitpid(child, &status, 0));
			SAY("named by %s, owner %u: %s, got %d", is_user ? "500" : "root", uid, r ? err_name(e) : "ok", WEXITSTATUS(status));
			shown("after its end");
			told_within("here", p[0], 0);
		}
	}
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(0);
	siginfo_t info;
	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	T(fcntl(p[0], F_SETOWN, child));
	shown("a zombie");
	MUST(waitpid(child, NULL, 0));
	shown("a zombie that was reaped");
	MUST(fcntl(p[0], F_SETOWN, getpid()));
	child = (pid_t)MUST(fork());
	if (child == 0) {
		MUST(write(p[1], "a", 1));
		told_within("in a child that wrote", p[0], 0);
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0));
	told_within("in its parent, who is the owner", p[0], 0);
}

static void full(void)
{
	struct rlimit few = { 3, 3 };
	MUST(setrlimit(RLIMIT_SIGPENDING, &few));
	MUST(setresuid(1234, 1234, 1234));
	MUST(fcntl(p[0], F_SETOWN, getpid()));
	for (int at = 0; at < 6; at++)
		MUST(write(p[1], "a", 1));
	told_within("six with room for three", p[0], 0);
}

static volatile sig_atomic_t seen;
static void on(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	seen = info->si_code;
}

/* A handler runs before the call that caused the signal returns. */
static void at_once(void)
{
	struct sigaction action = { .sa_sigaction = on, .sa_flags = SA_SIGINFO };
	sigset_t set;
	sigaction(told, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, told);
	MUST(fcntl(p[0], F_SETOWN, getpid()));
	MUST(sigprocmask(SIG_UNBLOCK, &set, NULL));
	MUST(write(p[1], "a", 1));
	IS(seen == POLL_IN);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

int main(void)
{
	setbuf(stdout, NULL);
	told_begin();
	MUST(pipe(p));
	MUST(fcntl(p[0], F_SETSIG, told));
	MUST(fcntl(p[0], F_SETFL, O_ASYNC));
	kinds();
	at_once();
	children();
	full();
	return 0;
}
